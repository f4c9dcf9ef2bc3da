//! Differences between two price books by entry. Two entries correspond if they have the same models,
//! place and start; prices are compared as they are charged.

use std::collections::BTreeMap;

use meter::TokenType;
use text::{money, per_million};

use crate::book::Book;
use crate::entry::{Entry, Models, STANDARD};
use crate::instant;
use crate::prices::{PER_REQUEST, key_of};

/// A difference in one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The entry's title.
    pub entry: String,
    /// The kind.
    pub kind: Kind,
    /// The facts that differ; of an added or removed entry, all facts.
    pub facts: Vec<Fact>,
}

meter::listed_enum! {
    /// The kind of a difference.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Only the new book has it.
        Added = "added",
        /// Only the old book has it.
        Removed = "removed",
        /// Both have it, with different facts.
        Changed = "changed",
    }
    /// Returns the name for output.
    pub fn name(self);
}

/// One fact of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name: `input`, `batch: output`, `above 200000: input`, `aliases`. Token prices are for a
    /// million.
    pub name: String,
    /// The value in the old book, if it has one.
    pub old: Option<String>,
    /// The value in the new book, if it has one.
    pub new: Option<String>,
}

/// Returns the differences between two books, none if they charge alike. Versions are not compared.
pub fn diff(old: &Book, new: &Book) -> Vec<Change> {
    let (olds, news) = (by_key(old), by_key(new));
    let mut changes = Vec::new();
    if old.currency() != new.currency() {
        let code = |book: &Book| Some(book.currency().code().to_owned());
        let facts = vec![Fact { name: "currency".to_owned(), old: code(old), new: code(new) }];
        changes.push(Change { entry: "the whole book".to_owned(), kind: Kind::Changed, facts });
    }
    let terms = |book: &Book| -> BTreeMap<String, String> {
        let all = book.tenants().iter();
        all.map(|term| (format!("tenant {}", term.tenants.text()), term.text.to_string())).collect()
    };
    let facts = compared(terms(old), terms(new));
    if !facts.is_empty() {
        changes.push(Change { entry: "the whole book".to_owned(), kind: Kind::Changed, facts });
    }
    let mut keys: Vec<&Key<'_>> = olds.keys().chain(news.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (before, after) = (olds.get(key).copied(), news.get(key).copied());
        let kind = match (before, after) {
            (None, _) => Kind::Added,
            (_, None) => Kind::Removed,
            _ => Kind::Changed,
        };
        let facts = differences(before, after);
        if let Some(entry) = after.or(before).filter(|_| !facts.is_empty() || kind != Kind::Changed) {
            changes.push(Change { entry: entry.title(), kind, facts });
        }
    }
    changes
}

type Key<'b> = (&'b Models, Option<&'b str>, Option<&'b str>, i64);

fn by_key(book: &Book) -> BTreeMap<Key<'_>, &Entry> {
    book.entries()
        .iter()
        .map(|entry| {
            ((&entry.models, entry.upstream.as_deref(), entry.provider.as_deref(), entry.from_us), entry)
        })
        .collect()
}

fn differences(before: Option<&Entry>, after: Option<&Entry>) -> Vec<Fact> {
    compared(facts(before), facts(after))
}

/// Returns the facts whose values differ, in the order of their names.
fn compared<N: Ord + Clone + Into<String>>(
    mut olds: BTreeMap<N, String>,
    mut news: BTreeMap<N, String>,
) -> Vec<Fact> {
    let mut names: Vec<N> = olds.keys().chain(news.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let pairs = names.into_iter().map(|name| {
        let (old, new) = (olds.remove(&name), news.remove(&name));
        Fact { name: name.into(), old, new }
    });
    pairs.filter(|fact| fact.old != fact.new).collect()
}

/// A fact's name after its sort key: tier (the standard one first), context length, token type.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String, u64, usize, String);

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.3
    }
}

fn facts(entry: Option<&Entry>) -> BTreeMap<Name, String> {
    let mut facts = BTreeMap::new();
    let Some(entry) = entry else { return facts };
    for offer in &entry.offers {
        let rate = &offer.rate;
        let tier = if &*rate.tier == STANDARD { "" } else { &*rate.tier };
        let mut place = String::new();
        if !tier.is_empty() {
            place = format!("{tier}: ");
        }
        if rate.above_input_tokens > 0 {
            place = format!("{place}above {}: ", rate.above_input_tokens);
        }
        let mut put = |at: usize, key: &str, price: String| {
            facts.insert(Name(tier.to_owned(), rate.above_input_tokens, at, format!("{place}{key}")), price);
        };
        for (at, kind) in TokenType::ALL.into_iter().enumerate() {
            if let Some(price) = rate.per_token[at] {
                put(at, key_of(kind), per_million(price.into()).to_string());
            }
        }
        if rate.per_request != 0 {
            put(TokenType::ALL.len(), PER_REQUEST, money(rate.per_request.into()).to_string());
        }
    }
    let last = |name: &str| Name("~".to_owned(), 0, 0, name.to_owned());
    if !entry.aliases.is_empty() {
        facts.insert(last("aliases"), entry.aliases.join(", "));
    }
    if let Some(until) = entry.until_us {
        facts.insert(last("valid_until"), instant::written(until));
    }
    facts
}
