//! A text to count: bounded, and never shown.

use std::fmt;

use crate::limits::TEXT_BYTES;

/// Text of a prompt or an answer. Its `Debug` says how long it is and nothing else.
pub struct Text(String);

impl Text {
    /// `None` if it has more than [`TEXT_BYTES`] bytes: then there is no local count.
    pub fn new(text: String) -> Option<Self> {
        (text.len() <= TEXT_BYTES).then_some(Self(text))
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_bounded_and_not_shown() {
        assert_eq!(format!("{:?}", Text::new("secret".to_owned())), "Some(Text(6 bytes))");
        assert!(Text::new("x".repeat(TEXT_BYTES)).is_some());
        assert!(Text::new("x".repeat(TEXT_BYTES + 1)).is_none());
    }
}
