//! Observations in buckets. The law: the count is never kept, it is the sum of the buckets, so that
//! no scrape can see the two disagree.

use meter::Gaps;

use crate::cell::{Absorb, Count, Sum};
use crate::reading::HistogramReading;
use crate::table::{Entry, Kind, Metric, Unit};

/// A worker's histogram with `BUCKETS` buckets, the last one open: one more than its metric's edges.
#[derive(Debug)]
pub(crate) struct Histogram<const BUCKETS: usize> {
    buckets: [Count; BUCKETS],
    /// In parts of the metric's unit, [`scale`] to one.
    sum: Sum,
}

impl<const BUCKETS: usize> Default for Histogram<BUCKETS> {
    fn default() -> Self {
        Self { buckets: [const { Count::zero() }; BUCKETS], sum: Sum::default() }
    }
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    /// One duration, for a metric in seconds.
    pub(crate) fn seconds(&self, metric: Metric, ns: u64) {
        // A correctly rounded quotient: 1_000_000 ns is the same f64 as the edge written 0.001.
        self.observe(metric, ns as f64 / NANOS, ns);
    }

    /// One rate, for a metric per second. What is not a rate (NaN, infinite, negative) is left out.
    pub(crate) fn rate(&self, metric: Metric, per_second: f64) {
        if per_second.is_finite() && per_second >= 0.0 {
            self.observe(metric, per_second, (per_second * MILLIONTHS).round() as u64);
        }
    }

    /// One amount of energy, for a metric in joules. What is not one is left out.
    pub(crate) fn joules(&self, metric: Metric, joules: f64) {
        if joules.is_finite() && joules >= 0.0 {
            self.observe(metric, joules, (joules * NANOS).round() as u64);
        }
    }

    /// One number of tokens.
    pub(crate) fn tokens(&self, metric: Metric, n: u64) {
        self.observe(metric, n as f64, n);
    }

    /// An exchange's gaps, which were put in these very buckets when they were seen.
    pub(crate) fn gaps(&self, gaps: &Gaps) {
        for (bucket, n) in self.buckets.iter().zip(gaps.buckets) {
            bucket.add(n);
        }
        self.sum.add(gaps.sum_ns);
    }

    fn observe(&self, metric: Metric, value: f64, sum: u64) {
        let at = edges(metric.entry()).partition_point(|edge| *edge < value);
        // A metric whose edges do not fit its cells is a mistake of the table; the tests find it.
        if let Some(bucket) = self.buckets.get(at) {
            bucket.add(1);
            self.sum.add(sum);
        }
    }

    /// What it holds now.
    pub(crate) fn read(&self) -> Distribution {
        // A server may claim any number of tokens; even so the buckets' sum has to fit a u64.
        let most = u64::MAX / (BUCKETS as u64);
        let buckets = self.buckets.iter().map(|bucket| bucket.get().min(most)).collect();
        Distribution { buckets, sum: self.sum.get() }
    }
}

impl<const BUCKETS: usize> Absorb for Histogram<BUCKETS> {
    fn absorb(&self, other: &Self) {
        let Self { buckets, sum } = self;
        buckets.absorb(&other.buckets);
        sum.absorb(&other.sum);
    }
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    buckets: Vec<u64>,
    sum: f64,
}

impl Distribution {
    /// How many observations.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().copied().fold(0, u64::saturating_add)
    }

    /// Their sum, in the unit of `metric`.
    pub(crate) fn sum(&self, metric: Metric) -> f64 {
        self.sum / scale(metric.entry().unit)
    }

    /// Each bucket's upper edge and its own observations, not cumulated.
    pub(crate) fn buckets(&self, metric: Metric) -> Vec<(f64, u64)> {
        let open = std::iter::once(f64::INFINITY);
        edges(metric.entry()).iter().copied().chain(open).zip(self.buckets.iter().copied()).collect()
    }

    /// For whoever exports it.
    pub(crate) fn reading(&self, metric: Metric) -> HistogramReading {
        let (sum, buckets) = (self.sum(metric), self.buckets(metric));
        HistogramReading { sum, buckets, ..HistogramReading::default() }
    }

    /// Adds another of the same metric.
    pub(crate) fn add(&mut self, other: &Self) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.sum += other.sum;
    }

    /// The value below which a share `q` of the observations lies, as PromQL's `histogram_quantile`
    /// estimates it: linear within a bucket, the last edge for the open one. `None` when empty.
    pub(crate) fn quantile(&self, metric: Metric, q: f64) -> Option<f64> {
        let rank = q * self.count() as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (upper, n) in self.buckets(metric) {
            let n = n as f64;
            if n > 0.0 && below + n >= rank {
                let inside = ((rank - below) / n).max(0.0);
                return Some(if upper.is_finite() { lower + (upper - lower) * inside } else { lower });
            }
            below += n;
            lower = upper;
        }
        None
    }
}

fn edges(entry: &'static Entry) -> &'static [f64] {
    match entry.kind {
        Kind::Histogram(edges) => edges,
        Kind::Counter | Kind::Gauge => &[],
    }
}

/// The parts of a unit that sums are kept in: whole ones, so that they are exact.
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
