//! The price book: which entry's prices hold for an exchange, and what they make of its tokens.
//!
//! Of the entries in force when it ended, the one counts that says most of where it holds (an upstream
//! before a provider before neither), then a name or an alias before a pattern, then the pattern with
//! the most characters that stand for themselves, then the first by the alphabet. The order of the file
//! never counts.

mod build;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use text::Glob;

use crate::charge::{Charge, Pico, Rate, Unpriced};
use crate::currency::Currency;
use crate::entry::{About, Entry, Models, Offer};
use crate::instant;
use crate::pattern;
use crate::usage::Usage;
use crate::warning::{LineError, Warning, WarningKind};

/// A price file that was read without a mistake.
#[derive(Clone, Debug)]
pub struct Book {
    version: Arc<str>,
    hash: Arc<str>,
    currency: Currency,
    entries: Vec<Entry>,
    /// By name and alias, what is said of most places first.
    names: HashMap<Arc<str>, Vec<Term>>,
    /// In the order in which they count.
    patterns: Vec<(Glob, Term)>,
}

/// When an entry is in force under one of its names.
#[derive(Clone, Copy, Debug)]
struct Term {
    entry: usize,
    from_us: i64,
    /// Exclusive.
    until_us: i64,
}

impl Book {
    /// Reads a price file (`prices.md` says what is in one), or tells everything that is wrong with it.
    pub fn read(text: &str) -> Result<(Self, Vec<Warning>), Vec<LineError>> {
        build::read(text)
    }

    /// What an exchange costs. It allocates nothing.
    pub fn charge(&self, usage: &Usage<'_>) -> Charge {
        let find = |model| self.find(model, usage.provider, usage.upstream, usage.at_us);
        let (by_request, by_response) = (find(usage.model), usage.response_model.and_then(find));
        let (rate, cost) = match (by_request, by_response) {
            (None, None) => return Charge::Unpriced(Unpriced::Model),
            (Some(entry), None) | (None, Some(entry)) => cost_by(entry, usage),
            // A client may ask a server that answers to any name by the cheapest. A pattern that the other name
            // fits says nothing of it: the dated name of an alias fits many.
            (Some(by_request), Some(by_response)) => match by_response.models {
                Models::Pattern(_) => cost_by(by_request, usage),
                Models::Name(_) => dearer(cost_by(by_request, usage), cost_by(by_response, usage)),
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

    /// The entry that holds for a model there and then.
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
        // An entry of the upstream for all names comes before those of other places.
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
                "the prices of `{text}` ended {}, and none follow: since then it is unpriced",
                instant::written(term.until_us)
            ),
        };
        ended.map(warning).collect()
    }

    /// Its entries, by model, place and time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What a model is, by all entries that are for it and had begun at `at_us` (microseconds since 1970), ended or
    /// not: what a name says counts before what a pattern says, of patterns what the one says that has the most
    /// characters that stand for themselves, and then what the newer says.
    pub fn about(&self, model: &str, at_us: i64) -> About {
        let applies = |entry: &&Entry| entry.from_us <= at_us && entry.is_for(model);
        let mut entries: Vec<&Entry> = self.entries.iter().filter(applies).collect();
        entries.sort_by_key(|entry| {
            let (is_name, literal_chars) = match entry.models {
                // An alias is as good a name as any, however long the name is that it is an alias of.
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

    /// Every rate it charges by.
    pub fn rates(&self) -> impl Iterator<Item = &Arc<Rate>> {
        self.entries.iter().flat_map(|entry| entry.offers.iter().map(|offer| &offer.rate))
    }

    /// The version, as the file names it.
    pub fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// BLAKE3 over what the file means, in hexadecimal: its layout, its comments, the order of its
    /// entries and whether a price is said for a token or for a million do not count.
    pub fn hash(&self) -> &Arc<str> {
        &self.hash
    }

    /// What all its prices are in.
    pub fn currency(&self) -> Currency {
        self.currency
    }
}

type Cost<'b> = (&'b Arc<Rate>, Result<Pico, Unpriced>);

/// The cost by an entry: by the tier that the response says, or else by the dearer of the one asked for and the
/// ordinary one.
fn cost_by<'b>(entry: &'b Entry, usage: &Usage<'_>) -> Cost<'b> {
    let input_tokens = usage.input_tokens();
    let by = |tier| {
        let Offer { rate, .. } = entry.offer(tier, input_tokens);
        (rate, rate.cost(usage.tokens, usage.success))
    };
    match (usage.tier, usage.requested_tier) {
        (Some(said), _) => by(Some(said)),
        (None, None) => by(None),
        (None, by_request) => dearer(by(None), by(by_request)),
    }
}

/// The other cost if it is more, else the first.
fn dearer<'b>(first: Cost<'b>, other: Cost<'b>) -> Cost<'b> {
    if is_more(other.1, first.1) { other } else { first }
}

/// Whether the one costs more than the other; a cost that is known is more than none.
fn is_more(one: Result<Pico, Unpriced>, other: Result<Pico, Unpriced>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one > other,
        (Ok(_) | Err(Unpriced::Overflow), Err(Unpriced::TokenType)) | (Err(Unpriced::Overflow), Ok(_)) => {
            true
        }
        _ => false,
    }
}
