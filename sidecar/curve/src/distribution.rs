//! A histogram of the metrics. The law: an edge belongs to the bucket below it, and within a
//! bucket observations are taken to be evenly distributed.

/// Observations by bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Each bucket's upper edge, ascending, the last one infinite, with the count of this bucket alone.
    buckets: Vec<(f64, f64)>,
    /// The sum of all observations, in their unit.
    pub sum: f64,
}

impl Distribution {
    /// Builds one from the page's cumulative counts, in any order.
    pub fn cumulative(mut cumulative: Vec<(f64, f64)>, sum: f64) -> Self {
        cumulative.retain(|(edge, n)| !edge.is_nan() && n.is_finite());
        cumulative.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut below = 0.0;
        let own = cumulative.into_iter().map(|(edge, n)| {
            let own = (n - below).max(0.0);
            below = n.max(below);
            (edge, own)
        });
        Self { buckets: own.collect(), sum }
    }

    /// Builds one from the count of each bucket, ascending.
    pub(crate) fn of(buckets: &[(f64, u64)], sum: f64) -> Self {
        Self { buckets: buckets.iter().map(|(edge, n)| (*edge, *n as f64)).collect(), sum }
    }

    /// Returns the number of observations.
    pub fn count(&self) -> f64 {
        self.buckets.iter().map(|(_, n)| n).sum()
    }

    /// Returns the mean; `None` without observations.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0.0).then(|| self.sum / count)
    }

    /// Returns the value that a share `q` of the observations does not exceed, or the last edge if it is
    /// beyond that. `None` without observations.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q * self.count();
        let (mut below, mut lower) = (0.0, 0.0);
        for &(upper, n) in &self.buckets {
            if n > 0.0 && below + n >= rank {
                let inside = ((rank - below) / n).max(0.0);
                return Some(if upper.is_finite() { lower + (upper - lower) * inside } else { lower });
            }
            below += n;
            lower = if upper.is_finite() { upper } else { lower };
        }
        None
    }

    /// Returns the share of the observations above a value, exact at an edge. `None` without observations.
    pub fn share_above(&self, value: f64) -> Option<f64> {
        let count = self.count();
        let (mut above, mut lower) = (0.0, 0.0);
        for &(upper, n) in &self.buckets {
            above += match (lower >= value, upper > value) {
                (true, _) => n,
                (false, true) if upper.is_finite() => n * (upper - value) / (upper - lower),
                // The position within the open bucket is unknown: count all of it.
                (false, true) => n,
                (false, false) => 0.0,
            };
            lower = upper;
        }
        (count > 0.0).then(|| above / count)
    }

    /// Returns the observations since an earlier histogram with the same edges; `None` if it is not an earlier one.
    pub fn less(&self, earlier: &Self) -> Option<Self> {
        if earlier.buckets.is_empty() {
            return Some(self.clone());
        }
        let same = self.buckets.len() == earlier.buckets.len();
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let buckets =
            pairs.map(|(now, then)| (now.0 == then.0 && now.1 >= then.1).then_some((now.0, now.1 - then.1)));
        let buckets = buckets.collect::<Option<Vec<_>>>().filter(|_| same)?;
        Some(Self { buckets, sum: self.sum - earlier.sum })
    }

    /// Returns the highest finite edge.
    pub fn last_edge(&self) -> Option<f64> {
        self.buckets.iter().rev().map(|(edge, _)| *edge).find(|edge| edge.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Distribution;

    const EDGES: [f64; 5] = [1.0, 2.0, 5.0, 10.0, f64::INFINITY];

    fn of(counts: &[u32]) -> Distribution {
        let mut below = 0.0;
        let cumulative = EDGES.iter().zip(counts).map(|(edge, n)| {
            below += f64::from(*n);
            (*edge, below)
        });
        Distribution::cumulative(cumulative.collect(), 1.0)
    }

    /// Lists every observation, evenly distributed in its bucket, sorted.
    fn spelled(counts: &[u32]) -> Vec<f64> {
        let mut lower = 0.0;
        let mut all = Vec::new();
        for (upper, n) in EDGES.iter().zip(counts) {
            let width = if upper.is_finite() { upper - lower } else { 0.0 };
            all.extend((1..=*n).map(|at| lower + width * f64::from(at) / f64::from(*n)));
            lower = if upper.is_finite() { *upper } else { lower };
        }
        all
    }

    #[test]
    fn quantiles_and_shares_are_exact_at_edges() {
        let some = of(&[0, 3, 0, 1, 0]);
        assert_eq!(some.share_above(2.0), Some(0.25));
        assert_eq!(some.share_above(1.0), Some(1.0));
        assert_eq!(some.share_above(10.0), Some(0.0));
        assert_eq!(some.quantile(0.75), Some(2.0));
        assert_eq!(some.quantile(1.0), Some(10.0));
        assert_eq!(of(&[0, 0, 0, 0, 2]).quantile(0.5), Some(10.0), "beyond the last edge");
        assert_eq!(of(&[0, 0, 0, 0, 2]).share_above(10.0), Some(1.0));
        for empty in [of(&[0, 0, 0, 0, 0]), Distribution::default()] {
            assert_eq!((empty.quantile(0.5), empty.share_above(1.0), empty.mean()), (None, None, None));
        }
    }

    #[test]
    fn unordered_or_invalid_buckets_are_tolerated() {
        let cumulative = vec![(f64::INFINITY, 9.0), (1.0, 4.0), (f64::NAN, 3.0), (2.0, 3.0), (5.0, f64::NAN)];
        let odd = Distribution::cumulative(cumulative, 0.0);
        assert_eq!(odd.count(), 9.0);
        assert_eq!(odd.share_above(1.0), Some(5.0 / 9.0));
    }

    #[test]
    fn difference_requires_an_earlier_histogram() {
        let (now, then) = (of(&[1, 3, 0, 1, 0]), of(&[0, 2, 0, 1, 0]));
        assert_eq!(now.less(&then).map(|it| it.count()), Some(2.0));
        assert_eq!(then.less(&now), None);
        assert_eq!(now.less(&Distribution::default()), Some(now.clone()));
        assert_eq!(now.less(&Distribution::cumulative(vec![(3.0, 0.0)], 0.0)), None);
    }

    proptest! {
        #![proptest_config(chance::cases(500))]

        #[test]
        fn quantiles_and_shares_agree_with_naive_twin(counts in prop::collection::vec(0u32..30, 5), q in 0.0..=1.0f64, value in 0.0..12.0f64) {
            let (some, all) = (of(&counts), spelled(&counts));
            prop_assert_eq!(some.quantile(q).is_none(), all.is_empty());
            let Some(quantile) = some.quantile(q) else { return Ok(()) };
            // The naive twin takes the observation of that rank; the estimate lies between it and the one before.
            let rank = (q * all.len() as f64).ceil() as usize;
            let upper = all[rank.clamp(1, all.len()) - 1];
            prop_assert!(quantile <= upper + 1e-9, "{quantile} {upper}");
            let before = all[..rank.max(1) - 1].last().copied().unwrap_or(0.0);
            prop_assert!(quantile >= before - 1e-9, "{quantile} {before}");
            let counted = all.iter().filter(|one| **one > value).count() as f64;
            let inside = all.iter().filter(|one| (**one - value).abs() < 5.0).count().min(1) as f64;
            let share = some.share_above(value).unwrap() * all.len() as f64;
            let open = f64::from(counts[4]);
            // At most one observation's width off; in the open bucket the position is unknown.
            prop_assert!((share - counted).abs() <= inside + if value >= 10.0 { open } else { 1e-9 }, "{share} {counted}");
        }
    }
}
