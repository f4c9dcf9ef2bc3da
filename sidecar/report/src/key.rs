//! The keys a report can be grouped and filtered by, and their values.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ledger::{month, period};

/// A key by which a report can be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The tenant.
    Tenant,
    /// The tenant's cost centre.
    CostCenter,
    /// The tenant's department.
    Department,
    /// The tenant's owner.
    Owner,
    /// A tag of the tenant.
    Tag(Tag),
    /// The key or account.
    Principal,
    /// The end user.
    Consumer,
    /// The requested model.
    Model,
    /// The model that answered.
    ResponseModel,
    /// The upstream's name.
    Upstream,
    /// `gen_ai.provider.name`.
    Provider,
    /// The dialect.
    Dialect,
    /// The ending.
    Ending,
    /// The service tier of the rate it was charged by.
    Tier,
    /// The first version of the price book with the rate it was charged by.
    Version,
    /// The entry of that book.
    Entry,
    /// The reason why it was first charged without a price; none if it had one.
    Unpriced,
    /// The currency of the charge.
    Currency,
    /// The day of its end.
    Day,
    /// The week of its end, from Monday on.
    Week,
    /// The month of its end.
    Month,
    /// The month of its bill.
    Billed,
    /// Usage, shed or correction.
    Class,
    /// The provenance of the input counts.
    InputProvenance,
    /// The provenance of the output counts.
    OutputProvenance,
}

impl Key {
    /// Every key with a fixed name: all but tags.
    pub const ALL: [Self; 24] = [
        Self::Tenant,
        Self::CostCenter,
        Self::Department,
        Self::Owner,
        Self::Principal,
        Self::Consumer,
        Self::Model,
        Self::ResponseModel,
        Self::Upstream,
        Self::Provider,
        Self::Dialect,
        Self::Ending,
        Self::Tier,
        Self::Version,
        Self::Entry,
        Self::Unpriced,
        Self::Currency,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Billed,
        Self::Class,
        Self::InputProvenance,
        Self::OutputProvenance,
    ];

    /// Returns its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::CostCenter => "cost_center",
            Self::Department => "department",
            Self::Owner => "owner",
            Self::Tag(tag) => tag.key,
            Self::Principal => "principal",
            Self::Consumer => "consumer",
            Self::Model => "model",
            Self::ResponseModel => "response_model",
            Self::Upstream => "upstream",
            Self::Provider => "provider",
            Self::Dialect => "dialect",
            Self::Ending => "ending",
            Self::Tier => "tier",
            Self::Version => "version",
            Self::Entry => "entry",
            Self::Unpriced => "unpriced",
            Self::Currency => "currency",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Billed => "billed",
            Self::Class => "class",
            Self::InputProvenance => "input_provenance",
            Self::OutputProvenance => "output_provenance",
        }
    }

    /// Returns the key with this name or alias.
    pub fn named(name: &str) -> Option<Self> {
        let name = match name {
            "team" => "tenant",
            "date" => "day",
            name => name,
        };
        match name.strip_prefix(TAG) {
            Some("") => None,
            Some(_) => Some(Self::Tag(Tag::of(name))),
            None => Self::ALL.into_iter().find(|key| key.name() == name),
        }
    }

    /// Returns true if it is an attribute of the tenant.
    pub fn is_attribute(self) -> bool {
        matches!(self, Self::CostCenter | Self::Department | Self::Owner | Self::Tag(_))
    }

    /// Returns true if daily totals have it; otherwise rows must be read.
    pub fn in_lines(self) -> bool {
        !matches!(self, Self::Consumer | Self::ResponseModel | Self::Dialect | Self::Unpriced)
    }

    /// Returns true if it distinguishes rates of one currency.
    pub(crate) fn is_of_rate(self) -> bool {
        matches!(self, Self::Tier | Self::Version | Self::Entry)
    }

    /// Returns true if it is a time.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Billed)
    }
}

/// The beginning of the key of a tag.
const TAG: &str = "tag.";

/// A tag as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The key: `tag.` and the name.
    key: &'static str,
}

impl Tag {
    /// Returns the tag of a key. Keys come from command lines: each is stored once, until the process ends.
    fn of(key: &str) -> Self {
        static KEYS: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = keys.get(key).copied().unwrap_or_else(|| key.to_owned().leak());
        keys.insert(key);
        Self { key }
    }

    /// Returns the name of the tag.
    pub fn name(self) -> &'static str {
        &self.key[TAG.len()..]
    }
}

/// The value of a key that is known only from rows, of exchanges without rows.
pub const NO_DETAIL: &str = "__no_detail__";

/// The value of a key in one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A name.
    Text(Arc<str>),
    /// A fixed word.
    Word(&'static str),
    /// A day, since 1970.
    Day(i32),
    /// A week, by its Monday, since 1970.
    Week(i32),
    /// A month, since January 1970.
    Month(i32),
    /// None.
    Null,
}

impl Value {
    /// The week of a day.
    pub(crate) fn week_of(day: i32) -> Self {
        // 1970-01-01 was a Thursday.
        Self::Week(day - (day + 3).rem_euclid(7))
    }

    /// Returns the value of an optional name.
    pub(crate) fn maybe(name: Option<&Arc<str>>) -> Self {
        name.map_or(Self::Null, |name| Self::Text(Arc::clone(name)))
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    fn rank(&self) -> (u8, i32) {
        match self {
            Self::Text(_) | Self::Word(_) => (0, 0),
            Self::Day(day) => (1, *day),
            Self::Month(month) => (2, *month),
            Self::Week(monday) => (3, *monday),
            Self::Null => (4, 0),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    /// Orders names alphabetically, days and months by time; missing values come last.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.text(), other.text()) {
            (Some(one), Some(two)) => one.cmp(two),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Value {
    /// Formats it as in reports; a missing value is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Word(word) => f.write_str(word),
            Self::Day(day) => f.write_str(&period::day(*day)),
            Self::Week(monday) => f.write_str(&period::week(*monday)),
            Self::Month(month) => f.write_str(&month::name(*month)),
            Self::Null => Ok(()),
        }
    }
}
