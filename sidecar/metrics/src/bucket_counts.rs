//! The classic buckets of a histogram, without its sum: what a quantile needs.

use crate::histogram::Histogram;
use crate::table::{Kind, Metric};

/// The observations of a metric by bucket, not cumulative. The last bucket is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketCounts {
    metric: Metric,
    counts: Vec<u64>,
}

impl BucketCounts {
    /// Returns the buckets of a metric without observations; none for a metric that is not a histogram.
    pub fn empty(metric: Metric) -> Self {
        let edges = edges(metric).len();
        Self { metric, counts: vec![0; if edges == 0 { 0 } else { edges + 1 }] }
    }

    /// Adds an observation.
    pub fn observe(&mut self, value: f64) {
        let at = edges(self.metric).partition_point(|edge| *edge < value);
        if let Some(bucket) = self.counts.get_mut(at) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// Adds the observations of another of the same metric.
    pub fn add(&mut self, other: &Self) {
        self.add_counts(other.counts.iter().copied());
    }

    /// Returns the observations since an earlier one; all of them in a bucket that has fewer than before.
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.counts.iter().zip(&earlier.counts);
        let counts = pairs.map(|(now, then)| now.checked_sub(*then).unwrap_or(*now)).collect();
        Self { metric: self.metric, counts }
    }

    /// Returns the number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().fold(0, u64::saturating_add)
    }

    /// Returns the `q`-quantile as PromQL's `histogram_quantile` estimates it: linear within a bucket, the last edge
    /// for the open one. `None` if it is empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q * self.count() as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        let uppers = edges(self.metric).iter().copied().chain([f64::INFINITY]);
        for (upper, n) in uppers.zip(&self.counts) {
            let n = *n as f64;
            if n > 0.0 && below + n >= rank {
                let inside = ((rank - below) / n).max(0.0);
                return Some(if upper.is_finite() { lower + (upper - lower) * inside } else { lower });
            }
            below += n;
            lower = upper;
        }
        None
    }

    /// Adds a worker's observations.
    pub(crate) fn read<const BUCKETS: usize>(&mut self, histogram: &Histogram<BUCKETS>) {
        self.add_counts(histogram.counts());
    }

    fn add_counts(&mut self, counts: impl Iterator<Item = u64>) {
        for (mine, theirs) in self.counts.iter_mut().zip(counts) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

fn edges(metric: Metric) -> &'static [f64] {
    match metric.entry().kind {
        Kind::Histogram(edges) => edges,
        Kind::Counter | Kind::Gauge => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> BucketCounts {
        let mut counts = BucketCounts::empty(Metric::OutputRate);
        values.iter().for_each(|value| counts.observe(*value));
        counts
    }

    #[test]
    fn quantiles_at_both_ends() {
        assert_eq!(of(&[]).quantile(0.5), None);
        assert_eq!(of(&[0.5, 0.5]).quantile(0.5), Some(0.5), "from zero");
        assert_eq!(of(&[9999.0]).quantile(0.5), Some(1000.0), "the open bucket yields the last edge");
        assert_eq!(of(&[12.0, 9999.0]).quantile(0.0), Some(10.0));
        assert_eq!(of(&[12.0]).quantile(1.0), Some(15.0));
    }

    #[test]
    fn difference_counts_later_observations() {
        let (earlier, later) = (of(&[12.0, 30.0]), of(&[12.0, 30.0, 30.0, 9999.0]));
        assert_eq!(later.since(&earlier), of(&[30.0, 9999.0]));
        assert_eq!(earlier.since(&later), of(&[30.0]), "a bucket that decreased began again");
        let mut sum = earlier.clone();
        sum.add(&later.since(&earlier));
        assert_eq!(sum, later);
        assert_eq!(BucketCounts::empty(Metric::InFlight).count(), 0, "a gauge has no buckets");
    }
}
