//! An entry of the book: for which models, where and when its prices hold, and the rates they make,
//! one for each service tier and context length that has prices of its own.

use std::sync::Arc;

use text::Glob;

use crate::charge::Rate;
use crate::instant;
use crate::pattern;
use crate::prices::TYPES;

/// The service tier of an entry's own prices.
pub const STANDARD: &str = "standard";

/// Words of requests and responses for the ordinary tier.
const STANDARD_NAMES: [&str; 4] = [STANDARD, "default", "auto", "on_demand"];

/// Whether a word means the ordinary tier, whose prices are the entry's own.
pub(crate) fn is_standard(tier: &str) -> bool {
    tier.is_empty() || STANDARD_NAMES.iter().any(|word| word.eq_ignore_ascii_case(tier))
}

/// For which models an entry is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Models {
    /// The one of this name, and of its aliases.
    Name(Arc<str>),
    /// All whose names fit.
    Pattern(Arc<str>),
}

impl Models {
    /// The name or the pattern.
    pub fn text(&self) -> &Arc<str> {
        let (Self::Name(text) | Self::Pattern(text)) = self;
        text
    }
}

/// What a model is, for reports; no charge depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Who made it.
    pub developer: Option<Arc<str>>,
    /// What it is one of, as in `Llama 3`.
    pub family: Option<Arc<str>>,
    /// Which of them, as in `3.1`.
    pub version: Option<Arc<str>>,
}

/// An entry of the book.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line of the file it begins on.
    pub line: u64,
    /// For which models.
    pub models: Models,
    /// Further names of the model.
    pub aliases: Vec<Arc<str>>,
    /// Only where the provider is this one.
    pub provider: Option<Arc<str>>,
    /// Only behind the upstream of this name.
    pub upstream: Option<Arc<str>>,
    /// What the model is.
    pub about: About,
    /// In force from then on, microseconds since 1970; since ever if it is `i64::MIN`.
    pub from_us: i64,
    /// Until then, if the file says so.
    pub until_us: Option<i64>,
    /// By tier, the ordinary one first, and by context length, ascending.
    pub offers: Vec<Offer>,
}

/// A rate of an entry.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The rate.
    pub rate: Arc<Rate>,
    /// Which of its prices are not named in the file but taken from what they are a kind of.
    pub derived: [bool; TYPES],
}

impl Entry {
    /// What an exchange of so many prompt tokens in this tier is charged by: a tier that the entry does
    /// not have is charged as the ordinary one.
    pub fn offer(&self, tier: Option<&str>, input_tokens: u64) -> &Offer {
        let requested = tier.map(str::trim).filter(|tier| !is_standard(tier)).unwrap_or(STANDARD);
        let of = |tier: &str| {
            let fits = |offer: &&Offer| {
                offer.rate.tier.eq_ignore_ascii_case(tier)
                    && (offer.rate.above_input_tokens == 0 || offer.rate.above_input_tokens < input_tokens)
            };
            self.offers.iter().rfind(fits)
        };
        of(requested).or_else(|| of(STANDARD)).unwrap_or(&self.offers[0])
    }

    /// Whether the entry has prices of its own for the tier; the ordinary one it always has.
    pub fn has_tier(&self, tier: &str) -> bool {
        is_standard(tier.trim())
            || self.offers.iter().any(|offer| offer.rate.tier.eq_ignore_ascii_case(tier.trim()))
    }

    /// What it is called where several are told apart: `gpt-4o (provider openai, from 2026-01-01)`.
    pub fn title(&self) -> String {
        let mut notes = Vec::new();
        if let Models::Pattern(_) = self.models {
            notes.push("pattern".to_owned());
        }
        notes.extend(self.provider.iter().map(|provider| format!("provider {provider}")));
        notes.extend(self.upstream.iter().map(|upstream| format!("upstream {upstream}")));
        if self.from_us != i64::MIN {
            notes.push(format!("from {}", instant::written(self.from_us)));
        }
        notes.extend(self.until_us.map(|until| format!("until {}", instant::written(until))));
        match notes.is_empty() {
            true => self.models.text().to_string(),
            false => format!("{} ({})", self.models.text(), notes.join(", ")),
        }
    }

    /// Whether a model is one of its own, wherever it is.
    pub(crate) fn is_for(&self, model: &str) -> bool {
        match &self.models {
            Models::Name(name) => **name == *model || self.aliases.iter().any(|alias| **alias == *model),
            Models::Pattern(pattern) => Glob::new(pattern).matches(model),
        }
    }

    /// The more is said of where it holds, the more it counts.
    pub(crate) fn rank(&self) -> u8 {
        2 * u8::from(self.upstream.is_some()) + u8::from(self.provider.is_some())
    }

    /// Whether it holds there.
    pub(crate) fn applies_to(&self, provider: &str, upstream: &str) -> bool {
        self.provider.as_deref().is_none_or(|mine| mine == provider)
            && self.upstream.as_deref().is_none_or(|mine| mine == upstream)
    }

    /// How exactly its pattern says what it means.
    pub(crate) fn literal_chars(&self) -> usize {
        pattern::literal_chars(self.models.text())
    }
}
