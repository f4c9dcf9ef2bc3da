//! Escaping of names from clients and settings: none breaks a line, and no two names become one.

use meter::Observer;
use metrics::{Metrics, Options};

use crate::openmetrics::{self, Page};
use crate::records::plain;

#[test]
fn special_characters_survive_round_trip() {
    for name in ["plain", "say \"hi\"", r"back\slash", "\\", "\"", "模型-β é", "a{b=\"c\"} 1 # EOF"] {
        let page = page_of(name);
        assert_eq!(in_flight(&page, name), Some(1.0), "{name:?}");
        assert_eq!(page.get("tokenmeter_upstream_up", &[("upstream", name)]), Some(1.0), "{name:?}");
    }
}

#[test]
fn control_characters_of_models_are_replaced() {
    for (name, label) in [
        ("a\0b", "a\u{fffd}b"),
        ("a\u{1b}[31mred", "a\u{fffd}[31mred"),
        ("two\nlines", "two\u{fffd}lines"),
        ("\r\t\u{7f}\u{9b}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
    ] {
        let page = page_of(name);
        assert_eq!(in_flight(&page, label), Some(1.0), "{name:?}");
    }
    let metrics = Metrics::new(Options::default());
    metrics.worker().model("a\u{1b}[31mred");
    assert!(!metrics.text().contains('\u{1b}'));
}

/// Reserved labels begin with `_`; a model of such a name has a label of its own.
#[test]
fn model_cannot_use_reserved_label() {
    for (name, label) in [("__name__", "\u{fffd}_name__"), ("_others", "\u{fffd}others")] {
        let page = page_of(name);
        assert_eq!(in_flight(&page, label), Some(1.0), "{name:?}");
        assert_eq!(in_flight(&page, name), None);
    }
}

/// No model has a reserved name: the relay escapes it (`spelling.rs` of its tests).
#[test]
fn reserved_labels_do_not_count_for_cap() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let mut worker = metrics.worker();
    for name in ["_other", "_unknown", "plain"] {
        let slot = worker.model(name);
        worker.begin(slot);
        worker.end(slot, &plain(name));
    }
    let page = openmetrics::read(&metrics.text());
    let models = page.samples.keys().filter(|series| series.name == "tokenmeter_exchanges_in_flight");
    assert_eq!(models.count(), 3);
    assert_eq!(page.sum("tokenmeter_exchanges_total"), 3.0);
}

#[test]
fn long_names_are_cut_at_character_boundary() {
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
    if !name.contains(char::is_control) {
        metrics.set_upstream_up(name, true);
    }
    openmetrics::read(&metrics.text())
}

fn in_flight(page: &Page, model: &str) -> Option<f64> {
    page.get("tokenmeter_exchanges_in_flight", &[("model", model)])
}
