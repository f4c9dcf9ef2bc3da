//! Short text from the wire, kept without allocation: untrusted, bounded, valid UTF-8.

use std::fmt;

use crate::limits::{MODEL_BYTES, TIER_BYTES};

/// A model's name, an answer's id, or the client's identifier of a user.
pub type Name = BoundedText<MODEL_BYTES>;

/// A service tier.
pub type Tier = BoundedText<TIER_BYTES>;

/// At most `MAX` bytes of text (`MAX` is below 256), cut on a character boundary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BoundedText<const MAX: usize> {
    len: u8,
    bytes: [u8; MAX],
}

impl<const MAX: usize> BoundedText<MAX> {
    /// The longest prefix of `bytes` that fits and is UTF-8.
    pub fn cut(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(MAX)];
        let valid = head.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
        let mut name = Self::default();
        name.bytes[..valid].copy_from_slice(&head[..valid]);
        name.len = u8::try_from(valid).expect("MAX is below 256");
        name
    }

    /// All of `bytes`, if they fit and are UTF-8: half an id is another id.
    pub fn whole(bytes: &[u8]) -> Option<Self> {
        let name = Self::cut(bytes);
        (name.as_str().len() == bytes.len()).then_some(name)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("only valid UTF-8 was copied in")
    }

    /// Returns true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Tier {
    /// A service tier, limited to letters, digits, `-`, `_` and `.`, so that no free text enters the ledger.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        Self::whole(word).filter(|tier| !tier.is_empty() && word.iter().all(is_word))
    }
}

impl<const MAX: usize> Default for BoundedText<MAX> {
    fn default() -> Self {
        Self { len: 0, bytes: [0; MAX] }
    }
}

impl<const MAX: usize> fmt::Debug for BoundedText<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
