//! The three formats of one reading agree.

use std::collections::BTreeSet;

use meter::Observer;
use metrics::{Format, Metrics, Options, Reading, Value};

use crate::openmetrics::Series;
use crate::protobuf::Native;
use crate::records::{plain, refused};
use crate::{openmetrics, protobuf, traces};

fn reading() -> Reading {
    let metrics = Metrics::new(Options::default());
    metrics.set_upstream_up("a \"quoted\\\nname é", true);
    let mut worker = metrics.worker();
    let mut traced = plain("plain");
    traced.identity.trace = Some(Box::new(traces::trace(7)));
    for (name, record) in [("plain", traced), ("re\"fused\n", refused("re\"fused\n"))] {
        let model = worker.model(name);
        worker.begin(model);
        worker.end(model, &record);
    }
    metrics.reading()
}

fn print(reading: &Reading, format: Format) -> String {
    let mut page = Vec::new();
    reading.write(format, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

#[test]
fn protobuf_has_the_samples_of_the_text() {
    let reading = reading();
    let text = openmetrics::read(&print(&reading, Format::OpenMetrics));
    let pages = protobuf::of(&reading);
    assert_eq!(pages.page.families, text.families);
    assert_eq!(pages.page.samples, text.samples);
    assert_eq!(pages.page.exemplars, text.exemplars);
    assert_eq!(text.exemplars.len(), 4, "as many as there are families with exemplars");
}

#[test]
fn native_buckets_accompany_single_observations() {
    let reading = reading();
    let pages = protobuf::of(&reading);
    let mut without = BTreeSet::new();
    for family in &reading.families {
        for sample in &family.samples {
            let Value::Histogram(of) = &sample.value else { continue };
            let entry = family.metric.entry();
            let labels = entry.labels.iter().zip(&sample.labels).map(|(name, value)| (*name, &**value));
            let series = Series::new(entry.name, &labels.collect::<Vec<_>>());
            match (&of.native, pages.natives.get(&series)) {
                (None, None) => _ = without.insert(entry.name),
                (Some(read), Some(printed)) => {
                    let buckets = read.buckets.iter().map(|(at, n)| (*at, *n as i64));
                    let expected = Native {
                        schema: i32::from(read.schema),
                        zero_threshold: read.zero_threshold,
                        zero_count: read.zero_count,
                        buckets: buckets.collect(),
                        // `splice` tests these.
                        exemplars: printed.exemplars.clone(),
                    };
                    assert_eq!(*printed, expected, "{series:?}");
                }
                other => panic!("{series:?}: {other:?}"),
            }
        }
    }
    let gaps = ["tokenmeter_chunk_gap_seconds", "tokenmeter_inter_token_seconds"];
    assert_eq!(without.into_iter().collect::<Vec<_>>(), gaps, "gaps are counted in classic buckets");
}

#[test]
fn text_0_0_4_has_same_samples() {
    let reading = reading();
    let newer = print(&reading, Format::OpenMetrics);
    let older = print(&reading, Format::Text);
    let samples = |page: &str| {
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split(" # ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(samples(&newer), samples(&older));
    assert!(!older.contains(" # {") && !older.contains("# UNIT ") && !older.contains("# EOF"));
    assert!(older.ends_with('\n'));
    // Each sample follows the TYPE line of its name.
    let mut family = String::new();
    for line in older.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            described.split_once(' ').unwrap().0.clone_into(&mut family);
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffix = name.strip_prefix(family.as_str()).unwrap();
            assert!(["", "_sum", "_count", "_bucket"].contains(&suffix), "{line}");
        }
    }
    assert!(older.contains("# TYPE tokenmeter_exchanges_total counter\n"));
    assert!(newer.contains("# TYPE tokenmeter_exchanges counter\n"));
}
