//! Native buckets as a scraper receives them, against a naive computation.

use std::collections::BTreeMap;

use meter::Observer;
use metrics::{Metric, Metrics, Options};
use proptest::prelude::*;

use crate::openmetrics::Series;
use crate::protobuf;
use crate::records::plain;

/// Returns the first bucket whose end is not below the value: bucket `i` of schema 3 ends at 2^(i/8).
fn bucket(seconds: f64) -> i32 {
    (-160..).find(|at| seconds <= (f64::from(*at) / 8.0).exp2()).unwrap()
}

proptest! {
    #![proptest_config(chance::cases(64))]

    #[test]
    fn scraper_finds_each_observation_in_its_bucket(
        // From below the start of the range, a microsecond, to beyond its end at 4096 s, evenly by octave.
        octaves in prop::collection::vec(8.0f64..43.0, 1..60),
    ) {
        let metrics = Metrics::new(Options::default());
        let mut worker = metrics.worker();
        let model = worker.model("m");
        let mut expected = BTreeMap::<i32, i64>::new();
        let mut zero = 0;
        for octave in octaves {
            let ns = octave.exp2() as u64;
            let mut record = plain("m");
            record.timing.first_token_ns = Some(ns);
            worker.begin(model);
            worker.end(model, &record);
            match bucket(ns as f64 / 1e9) {
                // The zero bucket ends at 2^-20 s; values beyond the last bucket are in it.
                ..=-160 => zero += 1,
                at => *expected.entry(at.min(12 * 8 - 1)).or_default() += 1,
            }
        }
        let natives = protobuf::of(&metrics.reading()).natives;
        let entry = Metric::FirstToken.entry();
        let of: Vec<_> = natives.iter().filter(|(series, _)| series.name == entry.name).collect();
        let [(Series { labels, .. }, native)] = &of[..] else { panic!("{of:?}") };
        prop_assert_eq!(labels.get("model").map(String::as_str), Some("m"));
        prop_assert_eq!((native.schema, native.zero_threshold), (3, (-20f64).exp2()));
        prop_assert_eq!(native.zero_count, zero);
        prop_assert_eq!(&native.buckets, &expected);
    }
}
