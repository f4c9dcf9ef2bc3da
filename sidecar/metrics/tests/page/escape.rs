//! Names come from clients and from settings; none may break a line or make two names one.

use metrics::{Metrics, Options};
use relay::Observer;

use crate::openmetrics::{self, Page};

#[test]
fn quotes_backslashes_line_feeds_and_any_utf8_come_back_as_they_went_in() {
    for name in [
        "plain",
        "say \"hi\"",
        r"back\slash",
        "\\",
        "\"",
        "two\nlines",
        "\r\t\u{1b}[31m",
        "模型-β é",
        "a{b=\"c\"} 1 # EOF",
    ] {
        let page = page_of(name);
        assert_eq!(in_flight(&page, name), Some(1.0), "{name:?}");
        assert_eq!(page.get("tokenmeter_upstream_up", &[("upstream", name)]), Some(1.0), "{name:?}");
    }
}

#[test]
fn a_nul_is_replaced_since_some_scrapers_end_there() {
    assert_eq!(in_flight(&page_of("a\0b"), "a\u{fffd}b"), Some(1.0));
}

#[test]
fn long_names_are_cut_between_characters() {
    let label = |name: &str| {
        let page = page_of(name);
        let label = page.samples.keys().filter(|series| series.name == "tokenmeter_exchanges_in_flight");
        let mut labels: Vec<_> = label.map(|series| series.labels["model"].clone()).collect();
        labels.retain(|label| label != "_unknown");
        labels.pop().unwrap()
    };
    assert_eq!(label(&"x".repeat(128)), "x".repeat(128));
    assert_eq!(label(&"x".repeat(129)), "x".repeat(128));
    assert_eq!(label(&format!("{}é", "x".repeat(127))), "x".repeat(127));
    assert_eq!(label(&"😀".repeat(1000)), "😀".repeat(32));
    assert!(label(&"\0".repeat(1000)).len() <= 128);
}

fn page_of(name: &str) -> Page {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let slot = worker.model(name);
    worker.begin(slot);
    if !name.contains('\0') {
        metrics.set_upstream_up(name, true);
    }
    openmetrics::read(&metrics.text())
}

fn in_flight(page: &Page, model: &str) -> Option<f64> {
    page.get("tokenmeter_exchanges_in_flight", &[("model", model)])
}
