//! Single-writer histograms. Invariants: the count is not stored, it is the sum of the buckets; and a reader sees a
//! whole observation or none, so that classic buckets, exponential buckets, sum and exemplars of a scrape agree.

mod exemplar;
mod native;

use meter::Gaps;

use crate::cell::{Count, Merge, SeqLock, Sum};
use crate::lazy::Lazy;
use crate::reading::{Exemplar, HistogramReading};
use crate::table::{Entry, Kind, Metric, Unit};

use exemplar::Exemplars;
use native::{Native, NativeCounts};

pub(crate) use exemplar::TraceRef;

/// A worker's histogram with `BUCKETS` buckets: one per edge of its metric, and an open one.
#[derive(Debug)]
pub(crate) struct Histogram<const BUCKETS: usize> {
    /// Guards all other fields.
    lock: SeqLock,
    buckets: [Count; BUCKETS],
    /// In parts of the metric's unit; [`scale`] parts are one unit.
    sum: Sum,
    /// The observations that were added one by one.
    native: Lazy<Native>,
    exemplars: Lazy<Exemplars<BUCKETS>>,
}

impl<const BUCKETS: usize> Default for Histogram<BUCKETS> {
    fn default() -> Self {
        Self {
            lock: SeqLock::default(),
            buckets: [const { Count::zero() }; BUCKETS],
            sum: Sum::default(),
            native: Lazy::default(),
            exemplars: Lazy::default(),
        }
    }
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    /// Adds a duration, for a metric in seconds.
    pub(crate) fn seconds(&self, metric: Metric, ns: u64) {
        self.seconds_traced(metric, ns, None);
    }

    /// Adds a duration with its trace.
    pub(crate) fn seconds_traced(&self, metric: Metric, ns: u64, trace: Option<&TraceRef>) {
        // The quotient is correctly rounded: 1_000_000 ns is the same f64 as the edge written 0.001.
        self.observe(metric, ns as f64 / NANOS, ns, trace);
    }

    /// Adds a rate, for a metric per second. NaN, infinite and negative values are ignored.
    pub(crate) fn rate(&self, metric: Metric, per_second: f64) {
        if per_second.is_finite() && per_second >= 0.0 {
            self.observe(metric, per_second, (per_second * MILLIONTHS).round() as u64, None);
        }
    }

    /// Adds an energy, for a metric in joules. NaN, infinite and negative values are ignored.
    pub(crate) fn joules(&self, metric: Metric, joules: f64) {
        if joules.is_finite() && joules >= 0.0 {
            self.observe(metric, joules, (joules * NANOS).round() as u64, None);
        }
    }

    /// Adds a number of tokens.
    pub(crate) fn tokens(&self, metric: Metric, n: u64) {
        self.observe(metric, n as f64, n, None);
    }

    /// Adds an exchange's gaps, which it counted in the same buckets, and its longest gap as the exemplar.
    pub(crate) fn gaps(
        &self,
        metric: Metric,
        gaps: &Gaps<BUCKETS>,
        longest_ns: u64,
        trace: Option<&TraceRef>,
    ) {
        // An unstreamed answer has none.
        if gaps.buckets.iter().all(|n| *n == 0) {
            return;
        }
        self.lock.write(|| {
            for (bucket, n) in self.buckets.iter().zip(gaps.buckets) {
                bucket.add(n);
            }
            self.sum.add(gaps.sum_ns);
            let Some(trace) = trace else { return };
            let longest = longest_ns as f64 / NANOS;
            let at = bucket(metric, longest);
            // An exemplar must be an observation. Only a record that no meter produced lacks one in this bucket.
            if gaps.buckets.get(at).is_some_and(|n| *n > 0) {
                self.exemplars.make().keep(&trace.exemplar(at, longest));
            }
        });
    }

    fn observe(&self, metric: Metric, value: f64, sum: u64, trace: Option<&TraceRef>) {
        let at = bucket(metric, value);
        // Edges that do not fit the cells are an error of the table, which the tests find.
        let Some(bucket) = self.buckets.get(at) else { return };
        self.lock.write(|| {
            bucket.add(1);
            self.sum.add(sum);
            self.native.make().observe(metric.entry().unit, value);
            if let Some(trace) = trace {
                self.exemplars.make().keep(&trace.exemplar(at, value));
            }
        });
    }

    /// Returns its current content.
    pub(crate) fn read(&self) -> Distribution {
        self.lock.read(|| self.copy()).unwrap_or_else(|torn| {
            // Scrapers reject native buckets whose count differs from that of the classic ones.
            let native = torn.native.clone().filter(|native| native.count() == torn.count());
            Distribution { native, ..torn }
        })
    }

    /// Returns the observations of each bucket, without waiting for a whole one.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().map(Count::get)
    }

    fn copy(&self) -> Distribution {
        // The sum of the buckets must fit a u64, for any number of tokens that a server reports.
        let most = u64::MAX / (BUCKETS as u64);
        Distribution {
            buckets: self.buckets.iter().map(|bucket| bucket.get().min(most)).collect(),
            sum: self.sum.get(),
            native: self.native.get().map(Native::read),
            exemplars: self.exemplars.get().map(Exemplars::read).unwrap_or_default(),
        }
    }
}

impl<const BUCKETS: usize> Merge for Histogram<BUCKETS> {
    fn merge(&self, other: &Self) {
        let read = other.read();
        self.lock.write(|| {
            for (bucket, n) in self.buckets.iter().zip(&read.buckets) {
                bucket.add(*n);
            }
            self.sum.add_sum(read.sum);
            if let Some(native) = &read.native {
                self.native.make().add(native);
            }
            for exemplar in &read.exemplars {
                self.exemplars.make().keep(exemplar);
            }
        });
    }
}

/// The content of a histogram at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    buckets: Vec<u64>,
    sum: f64,
    native: Option<NativeCounts>,
    exemplars: Vec<Exemplar>,
}

impl Distribution {
    /// Returns the number of observations.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().copied().fold(0, u64::saturating_add)
    }

    /// Returns the sum of the observations, in the unit of `metric`.
    pub(crate) fn sum(&self, metric: Metric) -> f64 {
        self.sum / scale(metric.entry().unit)
    }

    /// Returns each bucket's upper edge and its observations, not cumulative.
    pub(crate) fn buckets(&self, metric: Metric) -> Vec<(f64, u64)> {
        let open = std::iter::once(f64::INFINITY);
        edges(metric.entry()).iter().copied().chain(open).zip(self.buckets.iter().copied()).collect()
    }

    /// Returns it in the form for exports.
    pub(crate) fn reading(&self, metric: Metric) -> HistogramReading {
        HistogramReading {
            sum: self.sum(metric),
            buckets: self.buckets(metric),
            native: self.native.as_ref().map(|native| native.reading(metric.entry().unit)),
            exemplars: self.exemplars.clone(),
        }
    }
}

/// Returns the index of a value's bucket.
fn bucket(metric: Metric, value: f64) -> usize {
    edges(metric.entry()).partition_point(|edge| *edge < value)
}

fn edges(entry: &'static Entry) -> &'static [f64] {
    match entry.kind {
        Kind::Histogram(edges) => edges,
        Kind::Counter | Kind::Gauge => &[],
    }
}

/// Returns the number of parts of a unit in which sums are kept: whole numbers, so that they are exact.
fn scale(unit: Unit) -> f64 {
    match unit {
        Unit::Seconds | Unit::Joules => NANOS,
        Unit::Tokens => 1.0,
        _ => MILLIONTHS,
    }
}

const NANOS: f64 = 1e9;
const MILLIONTHS: f64 = 1e6;

#[cfg(test)]
mod tests;
