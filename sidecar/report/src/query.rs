//! The query of a report.

use std::fmt::{self, Write};
use std::sync::Arc;

use ledger::source::{Month, Range};
use ledger::{Calendar, Zone};
use text::Glob;

use super::attributes::Attributes;
use super::key::{Key, Value};
use super::what_if::WhatIf;

/// The query of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The time at which exchanges ended.
    pub range: Range,
    /// The month of the bill; any if `None`.
    pub billed: Option<Month>,
    /// The keys of groups.
    pub by: Vec<Key>,
    /// The filters; an exchange must match all of them.
    pub filters: Vec<Filter>,
    /// The basis of the cost.
    pub basis: Basis,
    /// The tenants that bear the cost of idle GPUs, with [`Basis::Gpu`].
    pub idle: Idle,
    /// The attributes of tenants.
    pub attributes: Arc<Attributes>,
    /// True to determine which requests were repeated.
    pub repeats: bool,
    /// A price book by which the exchanges are charged again, beside the actual cost.
    pub what_if: Option<WhatIf>,
    /// The order of groups.
    pub order: Order,
    /// Another time zone for the days, weeks and months of exchanges; `None`: those of the ledger's calendar.
    pub time_zone: Option<Zone>,
    /// The time of the query, microseconds since 1970: later months are in the future.
    pub now_us: i64,
}

impl Query {
    /// Returns the query of everything in one group, by price, at a time in microseconds since 1970.
    pub fn all(now_us: i64) -> Self {
        Self {
            range: Range::ALL,
            billed: None,
            by: Vec::new(),
            filters: Vec::new(),
            basis: Basis::Price,
            idle: Idle::None,
            attributes: Arc::default(),
            repeats: false,
            what_if: None,
            order: Order::Keys,
            time_zone: None,
            now_us,
        }
    }

    /// Returns true if it groups or filters by attributes of tenants.
    pub fn asks_for_attributes(&self) -> bool {
        self.keys().any(Key::is_attribute)
    }

    /// Returns the reason why rows must be read: daily totals lack a key, or the range has parts of days.
    pub(crate) fn rows_for(&self, calendar: &Calendar) -> Option<RowsFor> {
        match () {
            () if self.what_if.is_some() => Some(RowsFor::WhatIf),
            () if self.other_calendar(calendar).is_some() => Some(RowsFor::TimeZone),
            () if self.repeats => Some(RowsFor::Repeats),
            () if !self.range.is_whole_days(calendar) => Some(RowsFor::Time),
            () if self.keys().any(|key| !key.in_lines()) => Some(RowsFor::Keys),
            () => None,
        }
    }

    /// Returns the calendar of the other time zone, if it has other days than the ledger's.
    pub(crate) fn other_calendar(&self, of_ledger: &Calendar) -> Option<Calendar> {
        self.time_zone.clone().map(Calendar::of).filter(|calendar| calendar != of_ledger)
    }

    /// Returns true if the report distinguishes days, weeks or months of use.
    pub(crate) fn is_by_day(&self) -> bool {
        self.keys().any(|key| key.is_time() && key != Key::Billed)
    }

    /// Returns true if the report distinguishes rates.
    pub(crate) fn is_by_rate(&self) -> bool {
        self.keys().any(Key::is_of_rate)
    }

    /// The keys of groups and filters.
    fn keys(&self) -> impl Iterator<Item = Key> {
        self.by.iter().copied().chain(self.filters.iter().map(|filter| filter.key))
    }
}

/// The reason why a report is made from rows and not from daily totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsFor {
    /// The range has parts of days.
    Time,
    /// Daily totals lack a key.
    Keys,
    /// Exchanges were repriced.
    Rates,
    /// Exchanges are charged again by another price book.
    WhatIf,
    /// Repeated requests are determined.
    Repeats,
    /// The days are those of another time zone.
    TimeZone,
}

meter::listed_enum! {
    /// The basis of an exchange's cost.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Basis {
        /// Its tokens and the price book.
        Price = "price",
        /// The GPU time and energy it used.
        Gpu = "gpu",
    }
    /// The word on the command line.
    pub fn name(self);
}

meter::listed_enum! {
    /// The allocation of GPU cost without an exchange.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Idle {
        /// To no tenant: it has rows of its own.
        None = "none",
        /// To the tenants of the day, in proportion to their GPU cost.
        Proportional = "proportional",
        /// To the tenants of the day, in equal parts.
        Even = "even",
    }
    /// Returns the word on the command line.
    pub fn name(self);
}

meter::listed_enum! {
    /// The order of a report's rows.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Order {
        /// By their keys, in the query's order.
        #[default]
        Keys = "keys",
        /// The dearest first.
        Cost = "cost",
        /// The most tokens first.
        Tokens = "tokens",
        /// The most exchanges first.
        Exchanges = "exchanges",
    }
    /// Returns its name on the command line.
    pub fn name(self);
}

/// A filter of the values of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The key.
    pub key: Key,
    /// True if it matches all other values.
    pub except: bool,
    /// Values, in which `*` stands for any characters and `?` for one; an empty one is "none".
    pub patterns: Vec<Glob>,
}

impl Filter {
    /// The filter of a text like `tenant=acme,beta*` or `ending!=complete`. `\,` is a comma within a value.
    ///
    /// # Errors
    /// If it has another form, or there is no such key.
    pub fn read(text: &str) -> Result<Self, FilterError> {
        let (name, values) = text.split_once('=').ok_or_else(|| FilterError::Form(text.to_owned()))?;
        let (name, except) = name.strip_suffix('!').map_or((name, false), |name| (name, true));
        let key = Key::named(name).ok_or_else(|| UnknownKey(name.to_owned()))?;
        Ok(Self { key, except, patterns: values_of(values) })
    }

    /// Returns true if it accepts a value.
    pub fn accepts(&self, value: &Value) -> bool {
        let text = match value {
            Value::Text(text) => return self.passes(text),
            Value::Word(word) => return self.passes(word),
            other => other.to_string(),
        };
        self.passes(&text)
    }

    fn passes(&self, text: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(text)) != self.except
    }
}

impl fmt::Display for Filter {
    /// Formats it as [`Filter::read`] reads it, without control characters of a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.except { "!=" } else { "=" };
        write!(f, "{}{sign}", self.key.name())?;
        for (at, pattern) in self.patterns.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            for c in pattern.text().chars() {
                match c {
                    ',' => f.write_str("\\,")?,
                    '\\' | '\'' | '"' => f.write_char(c)?,
                    c => write!(f, "{}", c.escape_debug())?,
                }
            }
        }
        Ok(())
    }
}

/// Splits values at commas; a comma after a backslash is part of a value.
fn values_of(text: &str) -> Vec<Glob> {
    // No name contains a NUL.
    text.replace("\\,", "\0").split(',').map(|value| Glob::new(&value.replace('\0', ","))).collect()
}

/// The error of a text that is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It has another form.
    #[error("`{}` is not a filter; write KEY=VALUE, as in tenant=acme or model=llama*,qwen*", .0.escape_debug())]
    Form(String),
    /// There is no such key.
    #[error("{0}")]
    Key(#[from] UnknownKey),
}

/// The error of a name that is not that of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key `{}`; the keys are {}, tag.NAME", .0.escape_debug(), Key::ALL.map(Key::name).join(", "))]
pub struct UnknownKey(pub String);

#[cfg(test)]
mod tests {
    use text::Glob;

    use super::Filter;
    use crate::key::Value;

    #[test]
    fn filter_is_shown_as_it_is_typed() {
        for typed in [r"tenant=a\,b,c\d,\,", r#"model!=it's,"x",*é"#, "principal!=", "tenant=,a"] {
            assert_eq!(Filter::read(typed).expect("a filter").to_string(), typed);
        }
        let moved = Filter::read("tenant=a\u{1b}[2J").expect("a filter").to_string();
        assert_eq!(moved, r"tenant=a\u{1b}[2J");
    }

    #[test]
    fn filters_accept_matching_values() {
        let filter = Filter::read("tenant=acme,beta*").expect("a filter");
        assert!(filter.accepts(&Value::Text("beta-2".into())));
        assert!(!filter.accepts(&Value::Null));
        let filter = Filter::read("principal!=").expect("a filter");
        assert!(
            filter.accepts(&Value::Text("key".into())) && !filter.accepts(&Value::Null),
            "any value that is present"
        );
        let filter = Filter::read(r"tenant=a\,b,c\d,\,").expect("a filter");
        assert_eq!(filter.patterns.iter().map(Glob::text).collect::<Vec<_>>(), ["a,b", r"c\d", ","]);
        assert!(filter.accepts(&Value::Text("a,b".into())) && !filter.accepts(&Value::Text("a".into())));
        assert!(Filter::read("month=2026-10").expect("a filter").accepts(&Value::Month(681)));
        let error = Filter::read("color=red").expect_err("there is none");
        let error = error.to_string();
        assert!(error.contains("`color`") && error.contains("tenant"), "{error}");
        assert!(Filter::read("acme").expect_err("no key").to_string().contains("KEY=VALUE"));
    }
}
