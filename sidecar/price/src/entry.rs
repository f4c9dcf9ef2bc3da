//! An entry of the book: its models, the place and time where its prices hold, and its rates: one for
//! each service tier and context length with prices of its own.

use std::sync::Arc;

use text::Glob;

use crate::charge::Rate;
use crate::instant;
use crate::pattern;
use crate::prices::TYPES;
use crate::tenant_terms::TenantTerm;

/// The service tier of an entry's own prices.
pub const STANDARD: &str = "standard";

/// Names of the standard tier in requests and responses.
const STANDARD_NAMES: [&str; 4] = [STANDARD, "default", "auto", "on_demand"];

/// Returns whether `tier` names the standard tier, which has the entry's own prices.
pub(crate) fn is_standard(tier: &str) -> bool {
    tier.is_empty() || STANDARD_NAMES.iter().any(|word| word.eq_ignore_ascii_case(tier))
}

/// The models of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Models {
    /// The model with this name, or one of the entry's aliases.
    Name(Arc<str>),
    /// All models with a matching name.
    Pattern(Arc<str>),
}

impl Models {
    /// Returns the name or the pattern.
    pub fn text(&self) -> &Arc<str> {
        let (Self::Name(text) | Self::Pattern(text)) = self;
        text
    }
}

/// Facts of a model for reports; no charge depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The developer.
    pub developer: Option<Arc<str>>,
    /// The model family, as in `Llama 3`.
    pub family: Option<Arc<str>>,
    /// The version within the family, as in `3.1`.
    pub version: Option<Arc<str>>,
}

/// An entry of the book.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line of the file on which it begins.
    pub line: u64,
    /// The models.
    pub models: Models,
    /// Further names of the model.
    pub aliases: Vec<Arc<str>>,
    /// The provider to which the entry is restricted.
    pub provider: Option<Arc<str>>,
    /// The name of the upstream to which the entry is restricted.
    pub upstream: Option<Arc<str>>,
    /// Facts of the model.
    pub about: About,
    /// Start of its prices, inclusive, in microseconds since 1970; `i64::MIN` without a start.
    pub from_us: i64,
    /// `valid_until`, exclusive, in microseconds since 1970.
    pub until_us: Option<i64>,
    /// Rates by tier, the standard one first, then by context length, ascending.
    pub offers: Vec<Offer>,
}

/// A rate of an entry, with the origin of its prices.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The rate.
    pub rate: Arc<Rate>,
    /// The rates of tenants with terms of their own, one for each factor.
    pub(crate) by_factor: Vec<Arc<Rate>>,
    /// True for each price that the file does not give and that is taken from the more general type.
    pub derived: [bool; TYPES],
}

impl Offer {
    /// Returns the rate of a tenant with these terms.
    pub fn rate_for(&self, terms: Option<&TenantTerm>) -> &Arc<Rate> {
        terms.and_then(|terms| self.by_factor.get(terms.at)).unwrap_or(&self.rate)
    }
}

impl Entry {
    /// Returns the rate for a tier and a prompt length. A tier that the entry does not have is charged as
    /// the standard one.
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

    /// Returns whether the entry has prices of its own for the tier; it always has those of the standard one.
    pub fn has_tier(&self, tier: &str) -> bool {
        is_standard(tier.trim())
            || self.offers.iter().any(|offer| offer.rate.tier.eq_ignore_ascii_case(tier.trim()))
    }

    /// Returns the entry's title in lists of entries: `gpt-4o (provider openai, from 2026-01-01)`.
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

    /// Returns whether the entry is for a model, at any place.
    pub(crate) fn is_for(&self, model: &str) -> bool {
        match &self.models {
            Models::Name(name) => **name == *model || self.aliases.iter().any(|alias| **alias == *model),
            Models::Pattern(pattern) => Glob::new(pattern).matches(model),
        }
    }

    /// Returns the entry's precedence by place: an upstream before a provider before neither.
    pub(crate) fn rank(&self) -> u8 {
        2 * u8::from(self.upstream.is_some()) + u8::from(self.provider.is_some())
    }

    /// Returns whether the entry applies to this provider and upstream.
    pub(crate) fn applies_to(&self, provider: &str, upstream: &str) -> bool {
        self.provider.as_deref().is_none_or(|mine| mine == provider)
            && self.upstream.as_deref().is_none_or(|mine| mine == upstream)
    }

    /// Returns the number of literal characters of its pattern: the more, the more specific.
    pub(crate) fn literal_chars(&self) -> usize {
        pattern::literal_chars(self.models.text())
    }
}
