//! An entry of the book: its models, the place and time where its prices hold, and its rates: one for
//! each service tier and context length with prices of its own.

use std::sync::{Arc, OnceLock};

use text::Glob;

use crate::charge::Rate;
use crate::instant;
use crate::pattern;
use crate::prices::TYPES;
use crate::tenant_terms::TenantTerm;

/// The service tier of an entry's own prices.
pub const STANDARD: &str = "standard";

/// Joins the words of a tier of several dimensions: the service tier, the speed and the geography of a response.
pub(crate) const JOINT: char = '+';

/// The end of a rate's tier where the response stated a word that has no price.
pub(crate) const UNPRICED_MARK: char = '?';

/// Returns the words of a tier, without those that mean the entry's own prices.
pub(crate) fn words(tier: &str) -> impl Iterator<Item = &str> {
    tier.split(JOINT).map(str::trim).filter(|word| !meter::is_standard_tier(word))
}

/// Returns the number of a tier's words if `stated` has all of them.
pub(crate) fn shared_words(tier: &str, stated: &str) -> Option<usize> {
    let is_stated = |word: &str| words(stated).any(|other| other.eq_ignore_ascii_case(word));
    words(tier).all(is_stated).then(|| words(tier).count())
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
    /// Rates of several tiers together, computed from `offers`, in the same order.
    pub(crate) combined: Vec<Offer>,
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
    /// The same rates for tiers with a word that has no price; the first is that of `rate`.
    pub(crate) marked: Vec<OnceLock<Arc<Rate>>>,
}

impl Offer {
    /// Returns the rate of a tenant with these terms.
    pub fn rate_for(&self, terms: Option<&TenantTerm>) -> &Arc<Rate> {
        terms.and_then(|terms| self.by_factor.get(terms.at)).unwrap_or(&self.rate)
    }

    /// Returns the rate of a tenant with these terms for a tier of which a word has no price: the prices are the same.
    pub(crate) fn marked_for(&self, terms: Option<&TenantTerm>) -> &Arc<Rate> {
        let rate = self.rate_for(terms);
        let marked = || {
            let mut marked =
                Rate { tier: format!("{}{UNPRICED_MARK}", rate.tier).into(), ..Rate::clone(rate) };
            marked.id = marked.identify();
            Arc::new(marked)
        };
        let at = terms.map(|terms| terms.at + 1).filter(|at| *at <= self.by_factor.len()).unwrap_or(0);
        self.marked[at].get_or_init(marked)
    }
}

impl Entry {
    /// Returns the rates for a tier and a prompt length: those of the tiers with the most of its words, and of the
    /// standard one if it has none of them. A tier's words may each have prices, and not together.
    pub fn offers_for(&self, tier: &str, input_tokens: u64) -> impl Iterator<Item = &Offer> {
        let most = self.priced_words(tier);
        self.fitting(input_tokens).filter(move |offer| shared_words(&offer.rate.tier, tier) == Some(most))
    }

    /// Returns the rates of each tier, and of tiers together.
    pub fn all_offers(&self) -> impl Iterator<Item = &Offer> {
        self.offers.iter().chain(&self.combined)
    }

    /// Returns the rate of each tier for a prompt length.
    pub(crate) fn fitting(&self, input_tokens: u64) -> impl Iterator<Item = &Offer> {
        let fits = move |offer: &&Offer| {
            offer.rate.above_input_tokens == 0 || offer.rate.above_input_tokens < input_tokens
        };
        let tiers = [&self.offers, &self.combined];
        let tiers = tiers
            .into_iter()
            .flat_map(|offers| offers.chunk_by(|one, other| one.rate.tier == other.rate.tier));
        tiers.filter_map(move |lengths| lengths.iter().rfind(fits))
    }

    /// Returns the number of a tier's words that the entry has prices for, together.
    fn priced_words(&self, tier: &str) -> usize {
        self.all_offers().filter_map(|offer| shared_words(&offer.rate.tier, tier)).max().unwrap_or(0)
    }

    /// Returns whether the entry has prices of its own for the tier; it always has those of the standard one.
    pub fn has_tier(&self, tier: &str) -> bool {
        self.priced_words(tier) == words(tier).count()
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
