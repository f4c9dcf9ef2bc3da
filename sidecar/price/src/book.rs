//! The price book: selects the entry for an exchange and computes its cost.
//!
//! Of the entries in force at the end of the exchange, the most specific place applies (an upstream before
//! a provider before neither), then a name or an alias before a pattern, then the pattern with the most
//! literal characters, then the first in alphabetical order. The order of the file never matters.

mod build;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use origin::Diagnostic;
use text::Glob;

use crate::charge::{Charge, Pico, Rate, Unpriced};
use crate::currency::Currency;
use crate::entry::{About, Entry, Models, Offer, STANDARD};
use crate::instant;
use crate::pattern;
use crate::tenant_terms::{TenantTerm, TenantTerms};
use crate::tier::is_hosted;
use crate::usage::Usage;
use crate::warning::{Warning, WarningKind};

/// A price file that was read without errors.
#[derive(Clone, Debug)]
pub struct Book {
    version: Arc<str>,
    hash: Arc<str>,
    currency: Currency,
    tenants: TenantTerms,
    /// The providers and upstreams whose responses name the model that is charged; without it, the hosted ones.
    response_models: Option<Vec<Arc<str>>>,
    entries: Vec<Entry>,
    /// Terms by name and alias, the most specific place first.
    names: HashMap<Arc<str>, Vec<Term>>,
    /// Patterns in order of precedence.
    patterns: Vec<(Glob, Term)>,
}

/// The time during which an entry is in force under one of its names.
#[derive(Clone, Copy, Debug)]
struct Term {
    entry: usize,
    from_us: i64,
    /// Exclusive.
    until_us: i64,
}

impl Book {
    /// Reads the text of a price file (`prices.md` describes it), or returns all its errors.
    pub fn read(text: &str) -> Result<(Self, Vec<Warning>), Vec<Diagnostic>> {
        build::read("", text)
    }

    /// Reads the text of the price file at `path`, which errors name.
    pub fn read_file(path: &str, text: &str) -> Result<(Self, Vec<Warning>), Vec<Diagnostic>> {
        build::read(path, text)
    }

    /// Returns the charge of an exchange. It allocates only the first rate of a tier that has no price.
    pub fn charge(&self, usage: &Usage<'_>) -> Charge {
        let find = |model| self.find(model, usage.provider, usage.upstream, usage.at_us);
        let terms = self.terms_of(usage.tenant);
        let cost_by = |entry| cost_by(entry, terms, usage);
        let (by_request, by_response) = (find(usage.model), usage.response_model.and_then(find));
        let (rate, cost) = match (by_request, by_response) {
            (None, None) => return Charge::Unpriced(Unpriced::Model),
            (Some(entry), None) | (None, Some(entry)) => cost_by(entry),
            // A pattern also matches the dated name of the requested model.
            (Some(by_request), Some(by_response)) => match (self.trusts_model(usage), &by_response.models) {
                (true, Models::Name(_)) => cost_by(by_response),
                (true, Models::Pattern(_)) if usage.is_other_model() && by_response.literal_chars() > 0 => {
                    cost_by(by_response)
                }
                (_, Models::Pattern(_)) => cost_by(by_request),
                // Some servers accept any name, so a client could request the cheapest.
                (false, Models::Name(_)) => dearer(cost_by(by_request), cost_by(by_response)),
            },
        };
        match cost {
            Ok(0) if usage.processed && !usage.counted && rate.prices_tokens() => {
                Charge::Unpriced(Unpriced::Uncounted)
            }
            Ok(cost) => Charge::Priced { rate: Arc::clone(rate), cost },
            Err(why) => Charge::Unpriced(why),
        }
    }

    /// Returns the cost of an exchange by the dearest prices that its models' entries have, of any tier; `None` if no
    /// price is known. A budget counts it where the exchange's own tier has none.
    pub fn dearest(&self, usage: &Usage<'_>) -> Option<Pico> {
        let terms = self.terms_of(usage.tenant);
        let models = [Some(usage.model), usage.response_model].into_iter().flatten();
        let entries =
            models.filter_map(|model| self.find(model, usage.provider, usage.upstream, usage.at_us));
        let offers = entries.flat_map(|entry| entry.fitting(usage.input_tokens()));
        offers.filter_map(|offer| offer.rate_for(terms).cost(usage.tokens, usage.success).ok()).max()
    }

    /// Returns whether a server of this provider may repeat one of several requested names, although its response's model
    /// is charged: gateways have OpenAI's interface, and look like OpenAI.
    pub(crate) fn may_repeat_names(&self, provider: &str) -> bool {
        self.response_models.is_none() && provider == "openai"
    }

    /// Returns whether the response's model, and not the requested one, is charged.
    fn trusts_model(&self, usage: &Usage<'_>) -> bool {
        match &self.response_models {
            Some(places) => places.iter().any(|place| [usage.provider, usage.upstream].contains(&&**place)),
            None => is_hosted(usage.provider),
        }
    }

    /// Returns the entry for a model at a provider, an upstream and an instant.
    pub fn find(&self, model: &str, provider: &str, upstream: &str, at_us: i64) -> Option<&Entry> {
        let is_in_force = |term: &&Term| {
            (term.from_us..term.until_us).contains(&at_us)
                && self.entries[term.entry].applies_to(provider, upstream)
        };
        let named = self.names.get(model).and_then(|terms| terms.iter().find(is_in_force));
        let named = named.map(|term| &self.entries[term.entry]);
        let least = named.map(Entry::rank);
        self.patterns
            .iter()
            .take_while(|(_, term)| least.is_none_or(|least| self.entries[term.entry].rank() > least))
            .find(|(pattern, term)| is_in_force(&term) && pattern.matches(model))
            .map(|(_, term)| &self.entries[term.entry])
            .or(named)
    }

    /// Returns whether a client can choose among several entries for an upstream by the model's name alone, whether in
    /// force or not. Without a provider, it may be any.
    pub fn is_chosen_by_name(&self, provider: Option<&str>, upstream: &str) -> bool {
        let is_in_force = |entry: &&Entry| {
            let is_here = |mine: &Option<Arc<str>>, here| mine.as_deref().is_none_or(|mine| mine == here);
            is_here(&entry.upstream, upstream) && provider.is_none_or(|here| is_here(&entry.provider, here))
        };
        let covers = |entry: &&Entry| match &entry.models {
            Models::Pattern(pattern) => {
                entry.upstream.is_some() && entry.provider.is_none() && **pattern == *"*"
            }
            Models::Name(_) => false,
        };
        // An entry of the upstream for all names precedes those of less specific places.
        let is_covered = self.entries.iter().filter(is_in_force).any(|entry| covers(&entry));
        let mut entries =
            self.entries.iter().filter(is_in_force).filter(|entry| !is_covered || entry.upstream.is_some());
        let first = entries.next();
        entries.any(|entry| first.is_some_and(|first| first.models != entry.models))
    }

    /// Returns a warning for each name and pattern whose last prices had ended at `at_us` (microseconds since 1970), if
    /// no pattern is for its models from then on.
    pub fn ended(&self, at_us: i64) -> Vec<Warning> {
        let names = self.names.iter().flat_map(|(name, terms)| terms.iter().map(move |term| (&**name, term)));
        let patterns =
            || self.patterns.iter().map(|(_, term)| (&**self.entries[term.entry].models.text(), term));
        let mut last: BTreeMap<&str, &Term> = BTreeMap::new();
        for (text, term) in names.chain(patterns()) {
            let known = last.entry(text).or_insert(term);
            if term.until_us > known.until_us {
                *known = term;
            }
        }
        let is_covered = |text: &str| {
            patterns().any(|(other, term)| term.until_us > at_us && pattern::overlap(text, other))
        };
        let ended = last.into_iter().filter(|(text, term)| term.until_us <= at_us && !is_covered(text));
        let warning = |(text, term): (&str, &Term)| Warning {
            line: self.entries[term.entry].line,
            kind: WarningKind::Ended,
            message: format!(
                "the prices of `{text}` ended {}, and no others follow: it is unpriced since then",
                instant::written(term.until_us)
            ),
        };
        ended.map(warning).collect()
    }

    /// Returns its entries, sorted by model, place and time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the facts of a model, from all entries for it that had begun at `at_us` (microseconds since 1970), ended
    /// or not. A name precedes a pattern, a pattern with more literal characters one with fewer, and a newer entry an
    /// older one.
    pub fn about(&self, model: &str, at_us: i64) -> About {
        let applies = |entry: &&Entry| entry.from_us <= at_us && entry.is_for(model);
        let mut entries: Vec<&Entry> = self.entries.iter().filter(applies).collect();
        entries.sort_by_key(|entry| {
            let (is_name, literal_chars) = match entry.models {
                // Names and aliases rank equally, whatever their lengths.
                Models::Name(_) => (true, 0),
                Models::Pattern(_) => (false, entry.literal_chars()),
            };
            (is_name, literal_chars, entry.from_us, entry.rank())
        });
        let last = |field: fn(&About) -> &Option<Arc<str>>| {
            entries.iter().rev().find_map(|entry| field(&entry.about).clone())
        };
        About {
            developer: last(|about| &about.developer),
            family: last(|about| &about.family),
            version: last(|about| &about.version),
        }
    }

    /// Returns all its rates, those of tenants' terms too.
    pub fn rates(&self) -> impl Iterator<Item = &Arc<Rate>> {
        let offers = self.entries.iter().flat_map(Entry::all_offers);
        offers.flat_map(|offer| std::iter::once(&offer.rate).chain(&offer.by_factor))
    }

    /// Returns the terms of tenants, by precedence.
    pub fn tenants(&self) -> &[TenantTerm] {
        self.tenants.all()
    }

    /// Returns the terms of a tenant, if it has some.
    pub fn terms_of(&self, tenant: &str) -> Option<&TenantTerm> {
        self.tenants.find(tenant)
    }

    /// Returns the version that the file gives.
    pub fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// Returns BLAKE3 over the meaning of the file, in hexadecimal. Layout, comments, the order of entries
    /// and the unit in which prices are written do not change it.
    pub fn hash(&self) -> &Arc<str> {
        &self.hash
    }

    /// Returns the currency of all its prices.
    pub fn currency(&self) -> Currency {
        self.currency
    }
}

type Cost<'b> = (&'b Arc<Rate>, Result<Pico, Unpriced>);

/// Returns the cost by an entry: in the response's tier, or else in the dearer of the requested tier and the
/// standard one.
fn cost_by<'b>(entry: &'b Entry, terms: Option<&TenantTerm>, usage: &Usage<'_>) -> Cost<'b> {
    let input_tokens = usage.input_tokens();
    let by = |tier: &str| {
        let is_priced = entry.has_tier(tier);
        let cost = |offer: &'b Offer| {
            let rate = if is_priced { offer.rate_for(terms) } else { offer.marked_for(terms) };
            (rate, rate.cost(usage.tokens, usage.success))
        };
        entry
            .offers_for(tier, input_tokens)
            .map(cost)
            .reduce(dearer)
            .unwrap_or_else(|| cost(&entry.offers[0]))
    };
    match (usage.tier, usage.requested_tier) {
        (Some(stated), _) => by(stated),
        (None, None) => by(STANDARD),
        (None, Some(requested)) => dearer(by(STANDARD), by(requested)),
    }
}

/// Returns the other cost if it is more, else the first.
fn dearer<'b>(first: Cost<'b>, other: Cost<'b>) -> Cost<'b> {
    if is_more(other.1, first.1) { other } else { first }
}

/// Returns whether one costs more than the other. A known cost is more than an unknown one.
fn is_more(one: Result<Pico, Unpriced>, other: Result<Pico, Unpriced>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one > other,
        (Ok(_) | Err(Unpriced::Overflow), Err(Unpriced::TokenType)) | (Err(Unpriced::Overflow), Ok(_)) => {
            true
        }
        _ => false,
    }
}
