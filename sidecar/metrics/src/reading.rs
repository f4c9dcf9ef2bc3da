//! All samples at one moment, before any format: what the scrape page and OTLP are both made of. The
//! law: whoever exports, exports these numbers, so that no two ways out can disagree.

use std::borrow::Cow;
use std::sync::Arc;

use crate::currency::Currency;
use crate::table::Metric;

/// Everything at one moment, in the order of the table; a metric without samples is there
/// too.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When it was read, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Since when the counters count: the start of the process, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// One for each metric that is not switched off; shared with whoever is printing it.
    pub families: Vec<Arc<FamilyReading>>,
}

/// One metric's samples.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyReading {
    /// Which metric: its line in the table has everything else.
    pub metric: Metric,
    /// The currency in its names, if it is money by price.
    pub currency: Currency,
    /// Its samples, sorted as on the page.
    pub samples: Vec<Sample>,
}

impl FamilyReading {
    /// The Prometheus name as it is queried.
    pub fn name(&self) -> Cow<'static, str> {
        self.metric.entry().name_in(self.currency)
    }
}

/// One series at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The values of the metric's labels, in the table's order.
    pub labels: Box<[Arc<str>]>,
    /// What it came to.
    pub value: Value,
}

/// A sample's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number: a counter's or a gauge's.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// A distribution.
    Histogram(Box<HistogramReading>),
}

/// A histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramReading {
    /// The sum of all observations, in the metric's unit.
    pub sum: f64,
    /// Each bucket's upper edge (inclusive; the last is infinite) and its own observations, not
    /// cumulated. Their sum is the count.
    pub buckets: Vec<(f64, u64)>,
    /// The same observations in exponential buckets, where they are kept so.
    pub native: Option<NativeReading>,
    /// At most one for each classic bucket.
    pub exemplars: Vec<Exemplar>,
}

/// Exponential buckets as Prometheus' native histograms and OTLP's exponential ones have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeReading {
    /// Bucket `i` holds what is over `2^((i-1)/2^schema)` and at most `2^(i/2^schema)`
    /// (Prometheus' numbering; OTLP's is one less).
    pub schema: i8,
    /// Observations of at most `zero_threshold`.
    pub zero_count: u64,
    /// The end of the zero bucket, in the metric's unit.
    pub zero_threshold: f64,
    /// The buckets that hold anything: their number and their observations, ascending.
    pub buckets: Vec<(i32, u64)>,
}

/// One observation that a trace tells more of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exemplar {
    /// The classic bucket it lies in, by its place in [`HistogramReading::buckets`].
    pub bucket: usize,
    /// The observation, in the metric's unit.
    pub value: f64,
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// When it was observed, nanoseconds since 1970.
    pub at_unix_ns: u64,
}
