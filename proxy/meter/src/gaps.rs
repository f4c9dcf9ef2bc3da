//! Gaps between token-bearing frames, collected in the exported buckets: a fixed size per exchange, for any
//! length. They are observed at the ending, when the total gives the number of tokens in the frames.

use crate::edges::GAP_S;
use crate::record::Gaps;

/// Bucket edges in nanoseconds.
const EDGES_NS: [u64; GAP_S.len()] = nanoseconds(GAP_S);

/// Returns edges in nanoseconds.
pub(crate) const fn nanoseconds<const EDGES: usize>(seconds: [f64; EDGES]) -> [u64; EDGES] {
    let mut edges = [0; EDGES];
    let mut i = 0;
    while i < EDGES {
        edges[i] = (seconds[i] * 1e9).round() as u64;
        i += 1;
    }
    edges
}

/// Returns the index of the bucket of a gap; an edge belongs to the lower bucket.
#[inline]
pub(crate) fn place(edges_ns: &[u64], ns: u64) -> usize {
    edges_ns.partition_point(|&edge| edge < ns)
}

/// A histogram of gaps under construction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GapHistogram {
    buckets: [u32; GAP_S.len() + 1],
    sum_ns: u64,
}

impl GapHistogram {
    /// Observes `times` tokens that took `ns` together. Returns the observed time of each.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64, times: u64) -> u64 {
        let each = ns / times.max(1);
        let bucket = &mut self.buckets[bucket(each)];
        *bucket = bucket.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        self.sum_ns = self.sum_ns.saturating_add(ns);
        each
    }

    /// The observations of both.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket = bucket.saturating_add(more);
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self
    }

    /// The observations, unchanged.
    pub(crate) fn exact(&self) -> Gaps {
        Gaps { buckets: self.buckets.map(u64::from), sum_ns: self.sum_ns }
    }

    /// The observations, spread over `total` tokens: each observation stands for `total ÷ seen` tokens with
    /// gaps shorter by that factor. The sum of time stays, the count is exactly `total`.
    pub(crate) fn spread(&self, total: u64) -> Gaps {
        let seen: u64 = self.buckets.iter().map(|&n| u64::from(n)).sum();
        if seen == 0 || seen == total {
            return self.exact();
        }
        let mut gaps = Gaps { buckets: [0; GAP_S.len() + 1], sum_ns: self.sum_ns };
        let (mut before, mut assigned) = (0_u64, 0_u64);
        for (from, &n) in self.buckets.iter().enumerate() {
            before += u64::from(n);
            // Rounding the running sum, not each bucket, keeps the total exact.
            let upto = rounded(before, total, seen);
            let middle = u128::from(middle_ns(from)) * u128::from(seen) / u128::from(total.max(1));
            gaps.buckets[bucket(u64::try_from(middle).unwrap_or(u64::MAX))] += upto - assigned;
            assigned = upto;
        }
        gaps
    }
}

impl<const BUCKETS: usize> Default for Gaps<BUCKETS> {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum_ns: 0 }
    }
}

impl<const BUCKETS: usize> Gaps<BUCKETS> {
    /// The number of observations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// `part × total ÷ whole`, rounded half up.
fn rounded(part: u64, total: u64, whole: u64) -> u64 {
    let scaled = (u128::from(part) * u128::from(total) * 2 + u128::from(whole)) / (u128::from(whole) * 2);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn bucket(ns: u64) -> usize {
    place(&EDGES_NS, ns)
}

/// The value that represents a bucket: its geometric mean; for the open one, the last edge.
fn middle_ns(bucket: usize) -> u64 {
    match bucket {
        0 => EDGES_NS[0] / 2,
        i if i < EDGES_NS.len() => ((EDGES_NS[i - 1] as f64) * (EDGES_NS[i] as f64)).sqrt() as u64,
        _ => EDGES_NS[EDGES_NS.len() - 1] + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_belongs_to_the_lower_bucket() {
        assert_eq!(bucket(500_000), 0);
        assert_eq!(bucket(500_001), 1);
        assert_eq!(bucket(u64::MAX), GAP_S.len());
    }

    #[test]
    fn a_buckets_value_lies_in_the_bucket() {
        for at in 0..=GAP_S.len() {
            assert_eq!(bucket(middle_ns(at)), at);
        }
        assert_eq!(middle_ns(0), EDGES_NS[0] / 2);
        for (at, edges) in EDGES_NS.windows(2).enumerate() {
            let middle = middle_ns(at + 1);
            assert!(edges[0] < middle && middle < edges[1], "{edges:?} {middle}");
        }
    }

    #[test]
    fn spreading_keeps_the_time_and_sets_the_count() {
        let mut summary = GapHistogram::default();
        for ns in [1_000_000, 12_000_000, 12_000_000, 900_000_000] {
            summary.add(ns, 1);
        }
        for total in [1, 3, 4, 5, 8, 1000] {
            let gaps = summary.spread(total);
            assert_eq!((gaps.count(), gaps.sum_ns), (total, 925_000_000), "{total}");
        }
        // Two tokens per frame: half the gap each.
        let doubled = summary.spread(8);
        assert_eq!(doubled.buckets[bucket(6_000_000)], 4);
    }

    #[test]
    fn a_weighted_gap_is_observed_once_per_token() {
        let mut summary = GapHistogram::default();
        summary.add(30_000_000, 3);
        assert_eq!(summary.exact().buckets[bucket(10_000_000)], 3);
        assert_eq!(summary.exact().sum_ns, 30_000_000);
    }
}
