//! Short text from the wire: untrusted, bounded, valid UTF-8. It is kept in place, or in an allocation that a record
//! shares.

use std::fmt;
use std::sync::Arc;

use crate::limits::{MODEL_BYTES, TIER_BYTES, UNKNOWN_NAME_BYTES};

/// A model's name, an answer's id, or the client's identifier of a user.
pub type Name = BoundedText<MODEL_BYTES>;

/// The names in a body, in allocations that the record shares, and a fact that the record has beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The first model name, cut to the length of a [`Name`].
    pub model: Option<Arc<str>>,
    /// The first id that fits a name.
    pub id: Option<Arc<str>>,
    /// The words on which the price depends. Boxed, because most self-hosted servers state none.
    pub price: Option<Box<PriceWords>>,
    /// True if the server compacted the conversation: the body has an item or a pass of the type `compaction`, or is the
    /// answer to `/responses/compact`.
    pub is_compacted: bool,
}

/// The last word of each member of a response on which the price depends, by [`Dimension`]: a Responses stream begins
/// with the requested tier.
pub type PriceWords = [Option<Arc<str>>; 4];

/// A member of a response on which the price depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// The service tier.
    Tier,
    /// Vertex AI's `trafficType`, which names the service tier.
    Traffic,
    /// Anthropic's `speed`.
    Speed,
    /// Anthropic's `inference_geo`.
    Geography,
}

/// Words of the standard tier, speed and geography.
const STANDARD_WORDS: [&str; 5] = ["standard", "default", "auto", "on_demand", "global"];

/// Returns true for a word that selects the standard price.
pub fn is_standard_tier(word: &str) -> bool {
    word.is_empty() || STANDARD_WORDS.iter().any(|standard| standard.eq_ignore_ascii_case(word))
}

/// Returns a word in small letters and without the prefix of an enumeration (`ON_DEMAND_PRIORITY`); empty if it states
/// that there is none.
fn plain(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    let prefixes = ["on_demand_", "service_tier_", "traffic_type_"];
    match prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(&word) {
        "unspecified" | "not_available" => String::new(),
        plain => plain.to_owned(),
    }
}

impl Names {
    /// Returns the words on which the price depends, in alphabetical order and joined by `+`: the service tier, the
    /// traffic's type, the speed and the geography, other than the standard ones. If all are standard, it is the first
    /// of them as the server writes it. `None` if the response states none.
    pub fn price_tier(&self) -> Option<Arc<str>> {
        let stated = || self.price.as_deref().into_iter().flatten().flatten();
        let mut words: Vec<String> = stated().map(|word| plain(word)).collect();
        words.retain(|word| !is_standard_tier(word));
        words.sort_unstable();
        words.dedup();
        match words.is_empty() {
            true => stated().find(|word| !plain(word).is_empty()).cloned(),
            false => Some(words.join("+").into()),
        }
    }

    /// Replaces the words on which the price depends by those that another part of the response states.
    pub fn restate_price(&mut self, later: &Self) {
        let Some(later) = later.price.as_deref() else { return };
        let mine = self.price.get_or_insert_default();
        for (mine, later) in mine.iter_mut().zip(later).filter(|(_, later)| later.is_some()) {
            mine.clone_from(later);
        }
    }

    /// Keeps a word on which the price depends, if it fits a service tier.
    pub(crate) fn state_price(&mut self, dimension: Dimension, word: &[u8]) {
        let Some(word) = Tier::word_str(word) else { return };
        let known = &mut self.price.get_or_insert_default()[dimension as usize];
        if known.as_deref() != Some(word) {
            *known = Some(word.into());
        }
    }

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
        self.price.as_deref().and_then(|[tier, ..]| tier.as_deref()).unwrap_or_default()
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

/// A member of a usage object that is not read.
pub type MemberName = BoundedText<UNKNOWN_NAME_BYTES>;

impl MemberName {
    /// Returns the name; `_other` for free text, and for a longer name.
    pub(crate) fn of(name: &[u8]) -> Self {
        Self::cut(Self::word_str(name).unwrap_or("_other").as_bytes())
    }
}

impl Tier {
    /// A service tier.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        Self::word_str(word).map(|tier| Self::cut(tier.as_bytes()))
    }
}

impl<const MAX: usize> BoundedText<MAX> {
    /// All of `word`, if it fits and consists of letters, digits, `-`, `_` and `.`, so that no free text enters a
    /// ledger or a label.
    pub(crate) fn word_str(word: &[u8]) -> Option<&str> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        Self::whole_str(word).filter(|text| !text.is_empty() && word.iter().all(is_word))
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
