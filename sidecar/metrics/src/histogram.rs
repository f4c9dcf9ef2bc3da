//! Observations in buckets. The laws: the count is never kept, it is the sum of the buckets; and a
//! reader sees a whole observation or none, so that no scrape finds classic buckets, exponential
//! buckets, sum and exemplars that disagree.

mod exemplar;
mod native;

use meter::Gaps;

use crate::cell::{Absorb, Count, Sum, Turn};
use crate::lazy::Lazy;
use crate::reading::{Exemplar, HistogramReading};
use crate::table::{Entry, Kind, Metric, Unit};

use exemplar::Exemplars;
use native::{Native, NativeCounts};

pub(crate) use exemplar::Seen;

/// A worker's histogram with `BUCKETS` buckets, the last one open: one more than its metric's edges.
#[derive(Debug)]
pub(crate) struct Histogram<const BUCKETS: usize> {
    /// Makes all that is below one.
    turn: Turn,
    buckets: [Count; BUCKETS],
    /// In parts of the metric's unit, [`scale`] to one.
    sum: Sum,
    /// The same observations again, where they came one by one.
    native: Lazy<Native>,
    exemplars: Lazy<Exemplars<BUCKETS>>,
}

impl<const BUCKETS: usize> Default for Histogram<BUCKETS> {
    fn default() -> Self {
        Self {
            turn: Turn::default(),
            buckets: [const { Count::zero() }; BUCKETS],
            sum: Sum::default(),
            native: Lazy::default(),
            exemplars: Lazy::default(),
        }
    }
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    /// One duration, for a metric in seconds.
    pub(crate) fn seconds(&self, metric: Metric, ns: u64) {
        self.seconds_seen(metric, ns, None);
    }

    /// One duration, and the trace that tells more of it.
    pub(crate) fn seconds_seen(&self, metric: Metric, ns: u64, seen: Option<&Seen>) {
        // A correctly rounded quotient: 1_000_000 ns is the same f64 as the edge written 0.001.
        self.observe(metric, ns as f64 / NANOS, ns, seen);
    }

    /// One rate, for a metric per second. What is not a rate (NaN, infinite, negative) is left out.
    pub(crate) fn rate(&self, metric: Metric, per_second: f64) {
        if per_second.is_finite() && per_second >= 0.0 {
            self.observe(metric, per_second, (per_second * MILLIONTHS).round() as u64, None);
        }
    }

    /// One amount of energy, for a metric in joules. What is not one is left out.
    pub(crate) fn joules(&self, metric: Metric, joules: f64) {
        if joules.is_finite() && joules >= 0.0 {
            self.observe(metric, joules, (joules * NANOS).round() as u64, None);
        }
    }

    /// One number of tokens.
    pub(crate) fn tokens(&self, metric: Metric, n: u64) {
        self.observe(metric, n as f64, n, None);
    }

    /// An exchange's gaps, which were put in these very buckets when they were seen; and the longest
    /// of them, which a trace tells more of.
    pub(crate) fn gaps(&self, metric: Metric, gaps: &Gaps, longest_ns: u64, seen: Option<&Seen>) {
        self.turn.write(|| {
            for (bucket, n) in self.buckets.iter().zip(gaps.buckets) {
                bucket.add(n);
            }
            self.sum.add(gaps.sum_ns);
            let Some(seen) = seen else { return };
            let longest = longest_ns as f64 / NANOS;
            let at = bucket(metric, longest);
            // An exemplar is an observation: where there is none, a record was not made by a meter.
            if gaps.buckets.get(at).is_some_and(|n| *n > 0) {
                self.exemplars.make().keep(&seen.exemplar(at, longest));
            }
        });
    }

    fn observe(&self, metric: Metric, value: f64, sum: u64, seen: Option<&Seen>) {
        let at = bucket(metric, value);
        // A metric whose edges do not fit its cells is a mistake of the table; the tests find it.
        let Some(bucket) = self.buckets.get(at) else { return };
        self.turn.write(|| {
            bucket.add(1);
            self.sum.add(sum);
            self.native.make().observe(metric.entry().unit, value);
            if let Some(seen) = seen {
                self.exemplars.make().keep(&seen.exemplar(at, value));
            }
        });
    }

    /// What it holds now.
    pub(crate) fn read(&self) -> Distribution {
        self.turn.read(|| self.copy()).unwrap_or_else(|torn| {
            // The count is that of the buckets: others that do not come to it no scraper takes.
            let native = torn.native.clone().filter(|native| native.count() == torn.count());
            Distribution { native, ..torn }
        })
    }

    fn copy(&self) -> Distribution {
        // A server may claim any number of tokens; even so the buckets' sum has to fit a u64.
        let most = u64::MAX / (BUCKETS as u64);
        Distribution {
            buckets: self.buckets.iter().map(|bucket| bucket.get().min(most)).collect(),
            sum: self.sum.get(),
            native: self.native.get().map(Native::read),
            exemplars: self.exemplars.get().map(Exemplars::read).unwrap_or_default(),
        }
    }
}

impl<const BUCKETS: usize> Absorb for Histogram<BUCKETS> {
    fn absorb(&self, other: &Self) {
        let read = other.read();
        self.turn.write(|| {
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

/// A histogram as it was at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    buckets: Vec<u64>,
    sum: f64,
    native: Option<NativeCounts>,
    exemplars: Vec<Exemplar>,
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
        HistogramReading {
            sum: self.sum(metric),
            buckets: self.buckets(metric),
            native: self.native.as_ref().map(|native| native.reading(metric.entry().unit)),
            exemplars: self.exemplars.clone(),
        }
    }

    /// Adds another's buckets, which is all that quantiles need.
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

/// The bucket a value lies in.
fn bucket(metric: Metric, value: f64) -> usize {
    edges(metric.entry()).partition_point(|edge| *edge < value)
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
