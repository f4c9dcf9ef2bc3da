//! What is known about one metric: its kind and its unit. The law: a name carries the word of its unit,
//! and a name in money the currency's; only the currency's word is not fixed, since whoever runs the
//! meter chooses it.

use std::borrow::Cow;

use Kind::{Counter, Gauge, Histogram};

use crate::currency::Currency;

/// What is known about one metric.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The Prometheus name as it is queried: a counter's ends in `_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// What one unit of its value is.
    pub unit: Unit,
    /// Its labels, in the order of the page; each is described in [`LABELS`].
    pub labels: &'static [&'static str],
    /// One sentence; the page's HELP text.
    pub meaning: &'static str,
}

impl Entry {
    /// The name of the family on an OpenMetrics page: a counter's without its `_total`.
    pub fn family(&self) -> &'static str {
        match self.kind {
            Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Gauge | Histogram(_) => self.name,
        }
    }

    /// The name where the price book is in this currency; another than the table's only if the unit
    /// is [`Unit::Money`].
    pub fn name_in(&self, currency: Currency) -> Cow<'static, str> {
        self.in_currency(self.name, currency)
    }

    /// A name of this metric's, with this currency's word in it.
    pub(super) fn in_currency(&self, name: &'static str, currency: Currency) -> Cow<'static, str> {
        if self.unit != Unit::Money || currency == Currency::USD {
            return Cow::Borrowed(name);
        }
        Cow::Owned(name.replacen("_usd", &format!("_{}", currency.word()), 1))
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations in buckets with these upper edges (inclusive), and one open bucket above.
    Histogram(&'static [f64]),
}

impl Kind {
    /// The word used on the page and in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// What one unit of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Joules.
    Joules,
    /// Watts.
    Watts,
    /// Degrees Celsius.
    Celsius,
    /// Hertz.
    Hertz,
    /// US dollars.
    Usd,
    /// The price book's currency. The table says `usd`, which another currency's word takes the place
    /// of: [`Entry::name_in`].
    Money,
    /// Something per second; the name says what.
    PerSecond,
    /// Tokens.
    Tokens,
    /// Characters of visible text.
    Characters,
    /// Exchanges: a request and its response.
    Exchanges,
    /// HTTP requests.
    Requests,
    /// Things counted, which the meaning names.
    Things,
    /// A share, 0 to 1.
    Ratio,
    /// A truth value, 0 or 1.
    Truth,
}

impl Unit {
    /// The word used in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Joules => "joules",
            Self::Watts => "watts",
            Self::Celsius => "°C",
            Self::Hertz => "hertz",
            Self::Usd => "US dollars",
            Self::Money => "the price book's currency",
            Self::PerSecond => "per second",
            Self::Tokens => "tokens",
            Self::Characters => "characters",
            Self::Exchanges => "exchanges",
            Self::Requests => "requests",
            Self::Things => "–",
            Self::Ratio => "0 to 1",
            Self::Truth => "0 or 1",
        }
    }

    /// The word a name must carry because of its unit. Counts are named after what they count.
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

    /// The word of the page's UNIT line. OpenMetrics has none for a rate or a currency.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::PerSecond | Self::Usd | Self::Money | Self::Ratio => None,
            unit => unit.suffix(),
        }
    }
}
