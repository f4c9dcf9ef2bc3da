//! Buckets, sums and quantiles of a histogram.

use meter::edges::{FIRST_TOKEN_S, OUTPUT_RATE};

use super::*;

type FirstToken = Histogram<{ FIRST_TOKEN_S.len() + 1 }>;
type OutputRate = Histogram<{ OUTPUT_RATE.len() + 1 }>;

#[test]
fn edge_belongs_to_bucket_below() {
    for (at, edge) in FIRST_TOKEN_S.iter().enumerate() {
        let histogram = FirstToken::default();
        let ns = (edge * 1e9).round() as u64;
        histogram.seconds(Metric::FirstToken, ns);
        histogram.seconds(Metric::FirstToken, ns + 1);
        let read = histogram.read();
        assert_eq!((read.buckets[at], read.buckets[at + 1]), (1, 1), "{edge}");
    }
}

#[test]
fn invalid_rate_is_ignored() {
    let histogram = OutputRate::default();
    for rate in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        histogram.rate(Metric::OutputRate, rate);
    }
    assert_eq!((histogram.read().count(), histogram.read().sum), (0, 0.0));
}

#[test]
fn overflowing_gaps_still_have_a_sum() {
    let histogram = Histogram::<{ meter::edges::GAP_S.len() + 1 }>::default();
    let gaps = Gaps { buckets: [u64::MAX; meter::edges::GAP_S.len() + 1], sum_ns: u64::MAX };
    histogram.gaps(Metric::ChunkGap, &gaps, 0, None);
    histogram.gaps(Metric::ChunkGap, &gaps, 0, None);
    let read = histogram.read();
    assert_eq!(read.count(), read.buckets.iter().sum::<u64>(), "the buckets are capped");
}
