//! A text to count: bounded, and never printed.

use std::fmt;

use crate::limits::TEXT_MAX_BYTES;

/// Text of a prompt or a response. Its `Debug` prints only its length.
pub struct Text(String);

impl Text {
    /// Returns `None` if the text is longer than [`TEXT_MAX_BYTES`]: it gets no local count.
    pub fn new(text: String) -> Option<Self> {
        (text.len() <= TEXT_MAX_BYTES).then_some(Self(text))
    }

    /// Returns its length in bytes.
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
    fn text_is_bounded_and_not_printed() {
        assert_eq!(format!("{:?}", Text::new("secret".to_owned())), "Some(Text(6 bytes))");
        assert!(Text::new("x".repeat(TEXT_MAX_BYTES)).is_some());
        assert!(Text::new("x".repeat(TEXT_MAX_BYTES + 1)).is_none());
    }
}
