//! The three forms of one reading say the same.

use metrics::{Format, Metrics, Options, Reading};
use relay::Observer;

use crate::records::{plain, refused};
use crate::{openmetrics, protobuf};

fn reading() -> Reading {
    let metrics = Metrics::new(Options::default());
    metrics.set_upstream_up("a \"quoted\\\nname é", true);
    let mut worker = metrics.worker();
    for (name, record) in [("plain", plain("plain")), ("re\"fused\n", refused("re\"fused\n"))] {
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
}

#[test]
fn text_0_0_4_has_the_same_lines_but_for_what_it_does_not_know() {
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
    // Each sample lies below the TYPE line of its own name.
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
