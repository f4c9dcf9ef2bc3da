//! All samples at one moment, independent of a format. Invariant: every export (metrics page, OTLP) is rendered from
//! these numbers, so that exports agree.

use std::borrow::Cow;
use std::sync::Arc;

use crate::currency::Currency;
use crate::table::Metric;

/// All samples at one moment, in the order of the table, including metrics without samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Time of the reading, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Start of all counters, which is the start of the process; nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// One family for each enabled metric; shared with the encoder.
    pub families: Vec<Arc<FamilyReading>>,
}

/// One metric's samples.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyReading {
    /// The metric; its entry in the table has the names.
    pub metric: Metric,
    /// The currency in its name, for a metric in [`Unit::Money`](crate::Unit::Money).
    pub currency: Currency,
    /// Its samples, sorted as on the page.
    pub samples: Vec<Sample>,
}

impl FamilyReading {
    /// Returns the Prometheus name as it is queried.
    pub fn name(&self) -> Cow<'static, str> {
        self.metric.entry().name_in(self.currency)
    }
}

/// One series at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The values of the metric's labels, in the table's order.
    pub labels: Box<[Arc<str>]>,
    /// The value.
    pub value: Value,
}

/// A sample's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number of a counter or a gauge.
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
    /// Each bucket's upper edge (inclusive; the last is infinite) and its observations, not cumulative. Their sum is
    /// the count.
    pub buckets: Vec<(f64, u64)>,
    /// The same observations in exponential buckets, if the metric has them.
    pub native: Option<NativeReading>,
    /// At most one for each classic bucket.
    pub exemplars: Vec<Exemplar>,
}

/// Exponential buckets of Prometheus' native and OTLP's exponential histograms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeReading {
    /// Bucket `i` contains values above `2^((i-1)/2^schema)` and up to `2^(i/2^schema)` (Prometheus' numbering;
    /// OTLP's is one less).
    pub schema: i8,
    /// Observations of at most `zero_threshold`.
    pub zero_count: u64,
    /// The end of the zero bucket, in the metric's unit.
    pub zero_threshold: f64,
    /// The buckets with observations: number and observations, ascending.
    pub buckets: Vec<(i32, u64)>,
}

/// One observation with its trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exemplar {
    /// The index of its classic bucket in [`HistogramReading::buckets`].
    pub bucket: usize,
    /// The observation, in the metric's unit.
    pub value: f64,
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// Time of the observation, nanoseconds since 1970.
    pub at_unix_ns: u64,
}
