//! One metric's entry in the table. Invariant: a name contains the word of its unit, and a name in money the
//! word of its currency. Only the currency's word is variable, since the operator chooses the currency.

use std::borrow::Cow;

use Kind::{Counter, Gauge, Histogram};

use crate::currency::Currency;

/// One metric's entry in the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The Prometheus name as it is queried: a counter's ends in `_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// The unit of its value.
    pub unit: Unit,
    /// Its labels, in the order of the page; each is described in [`LABELS`].
    pub labels: &'static [&'static str],
    /// The HELP text: one sentence.
    pub meaning: &'static str,
}

impl Entry {
    /// Returns the family name on an OpenMetrics page: without `_total` for a counter.
    pub fn family(&self) -> &'static str {
        match self.kind {
            Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Gauge | Histogram(_) => self.name,
        }
    }

    /// Returns the name for a price book in this currency; it differs from the table's only if the unit is
    /// [`Unit::Money`].
    pub fn name_in(&self, currency: Currency) -> Cow<'static, str> {
        self.in_currency(self.name, currency)
    }

    /// Returns a name of this metric with the word of this currency.
    pub(super) fn in_currency(&self, name: &'static str, currency: Currency) -> Cow<'static, str> {
        if self.unit != Unit::Money || currency == Currency::USD {
            return Cow::Borrowed(name);
        }
        Cow::Owned(name.replacen("_usd", &format!("_{}", currency.word()), 1))
    }
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts observations in buckets with these inclusive upper edges, and in an open bucket above.
    Histogram(&'static [f64]),
}

impl Kind {
    /// Returns the name used on the page and in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

meter::listed_enum! {
    /// The unit of a value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Unit {
        /// Seconds.
        Seconds = "seconds",
        /// Bytes.
        Bytes = "bytes",
        /// Joules.
        Joules = "joules",
        /// Watts.
        Watts = "watts",
        /// Degrees Celsius.
        Celsius = "°C",
        /// Hertz.
        Hertz = "hertz",
        /// US dollars.
        Usd = "US dollars",
        /// The price book's currency. The table writes `usd`; [`Entry::name_in`] replaces it.
        Money = "the price book's currency",
        /// A rate per second; the name states of what.
        PerSecond = "per second",
        /// Tokens.
        Tokens = "tokens",
        /// Characters of visible text.
        Characters = "characters",
        /// Exchanges.
        Exchanges = "exchanges",
        /// HTTP requests.
        Requests = "requests",
        /// A count of what the meaning names.
        Things = "–",
        /// A share, 0 to 1.
        Ratio = "0 to 1",
        /// A truth value, 0 or 1.
        Truth = "0 or 1",
    }
    /// Returns the name used in the manual.
    pub fn name(self);
}

impl Unit {
    /// Returns the word that the unit requires in a name. Counts are named after the counted items.
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Joules => Some("joules"),
            Self::Watts => Some("watts"),
            Self::Celsius => Some("celsius"),
            Self::Hertz => Some("hertz"),
            Self::Usd | Self::Money => Some("usd"),
            Self::PerSecond => Some("per_second"),
            Self::Ratio => Some("ratio"),
            _ => None,
        }
    }

    /// Returns the word of the page's UNIT line. OpenMetrics has none for a rate or a currency.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::PerSecond | Self::Usd | Self::Money | Self::Ratio => None,
            unit => unit.suffix(),
        }
    }
}
