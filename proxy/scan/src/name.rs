//! Short text from the wire: untrusted, bounded, valid UTF-8. It is kept in place, or in an allocation that a record
//! shares.

use std::fmt;
use std::sync::Arc;

use crate::limits::{MODEL_BYTES, TIER_BYTES};

/// A model's name, an answer's id, or the client's identifier of a user.
pub type Name = BoundedText<MODEL_BYTES>;

/// The names in a body, in allocations that the record shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The first model name, cut to the length of a [`Name`].
    pub model: Option<Arc<str>>,
    /// The first id that fits a name.
    pub id: Option<Arc<str>>,
    /// The last service tier that fits a tier: a Responses stream begins with the requested one.
    pub tier: Option<Arc<str>>,
}

impl Names {
    /// The model; empty if there is none.
    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// The id; empty if there is none.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// The service tier; empty if there is none.
    pub fn tier(&self) -> &str {
        self.tier.as_deref().unwrap_or_default()
    }
}

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
        let text = Self::cut_str(bytes);
        let mut name = Self::default();
        name.bytes[..text.len()].copy_from_slice(text.as_bytes());
        name.len = u8::try_from(text.len()).expect("MAX is below 256");
        name
    }

    /// Returns the same prefix as [`cut`](Self::cut), borrowed.
    pub(crate) fn cut_str(bytes: &[u8]) -> &str {
        let head = &bytes[..bytes.len().min(MAX)];
        match str::from_utf8(head) {
            Ok(text) => text,
            Err(_) => head.utf8_chunks().next().map_or("", |chunk| chunk.valid()),
        }
    }

    /// All of `bytes`, if they fit and are UTF-8: half an id is another id.
    pub fn whole(bytes: &[u8]) -> Option<Self> {
        Self::whole_str(bytes).map(|text| Self::cut(text.as_bytes()))
    }

    /// Returns the same as [`whole`](Self::whole), borrowed.
    pub(crate) fn whole_str(bytes: &[u8]) -> Option<&str> {
        Some(Self::cut_str(bytes)).filter(|text| text.len() == bytes.len())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("only valid UTF-8 was copied in")
    }

    /// Returns true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the text in an allocation that a record can share; `None` if it is empty.
    pub fn shared(&self) -> Option<Arc<str>> {
        shared(self.as_str())
    }
}

/// Returns the text in an allocation that a record can share; `None` if it is empty.
pub(crate) fn shared(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}

impl Tier {
    /// A service tier, limited to letters, digits, `-`, `_` and `.`, so that no free text enters the ledger.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        Self::str_of(word).map(|tier| Self::cut(tier.as_bytes()))
    }

    /// Returns the same as [`of`](Self::of), borrowed.
    pub(crate) fn str_of(word: &[u8]) -> Option<&str> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        Self::whole_str(word).filter(|tier| !tier.is_empty() && word.iter().all(is_word))
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
