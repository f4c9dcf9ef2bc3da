//! A short name from the wire, kept without allocating: untrusted, bounded, valid UTF-8.

use std::fmt;

use crate::limits::{MODEL_BYTES, TIER_BYTES};

/// A model's name, an answer's id, a client's word for its user.
pub type Name = Brief<MODEL_BYTES>;

/// A service tier.
pub type Tier = Brief<TIER_BYTES>;

/// Up to `MOST` bytes of text (`MOST` is below 256), cut on a character boundary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Brief<const MOST: usize> {
    len: u8,
    bytes: [u8; MOST],
}

impl<const MOST: usize> Brief<MOST> {
    /// The longest prefix of `bytes` that fits and is UTF-8.
    pub fn cut(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(MOST)];
        let valid = head.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
        let mut name = Self::default();
        name.bytes[..valid].copy_from_slice(&head[..valid]);
        name.len = u8::try_from(valid).expect("MOST is below 256");
        name
    }

    /// All of `bytes`, if they fit and are UTF-8: half an id is the id of something else.
    pub fn whole(bytes: &[u8]) -> Option<Self> {
        let name = Self::cut(bytes);
        (name.as_str().len() == bytes.len()).then_some(name)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("only valid UTF-8 was copied in")
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Tier {
    /// A service tier: one of the short words by which servers call them, and nothing that somebody
    /// might smuggle into a ledger in its place. Letters, digits, `-`, `_` and `.`.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        Self::whole(word).filter(|tier| !tier.is_empty() && word.iter().all(is_word))
    }
}

impl<const MOST: usize> Default for Brief<MOST> {
    fn default() -> Self {
        Self { len: 0, bytes: [0; MOST] }
    }
}

impl<const MOST: usize> fmt::Debug for Brief<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
