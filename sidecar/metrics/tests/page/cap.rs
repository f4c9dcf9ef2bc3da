//! A client may name any model. However many names come, the labels stay few. (What a million cost
//! is in tests/cardinality.)

use metrics::{Metrics, Options};
use relay::Observer;

use crate::openmetrics::{self, Page};
use crate::records::plain;

#[test]
fn a_label_another_worker_made_is_found_after_the_cap() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let (mut first, mut second) = (metrics.worker(), metrics.worker());
    first.model("known");
    let other = second.model("too many");
    let known = second.model("known");
    assert_ne!(known, other);
    second.begin(known);
    let page = openmetrics::read(&metrics.text());
    assert_eq!(page.get("tokenmeter_exchanges_in_flight", &[("model", "known")]), Some(1.0));
    assert_eq!(overflow(&page), 1.0);
}

#[test]
fn a_refused_request_makes_no_label_but_finds_one() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let (mut first, mut second) = (metrics.worker(), metrics.worker());
    assert_eq!(first.known_model("noise"), None);
    let known = first.model("known");
    assert_eq!(first.known_model("known"), Some(known));
    let theirs = second.known_model("known").expect("another worker's label");
    assert_ne!(theirs, second.unknown_model());
    second.model("too many");
    assert_eq!(second.known_model("noise"), None);
    let page = openmetrics::read(&metrics.text());
    assert_eq!(overflow(&page), 1.0, "asking is no overflow");
    assert_eq!(labels(&page), 3);
}

#[test]
fn our_own_labels_need_no_room_and_are_no_overflow() {
    let metrics = Metrics::new(Options { models: 0, ..Options::default() });
    let mut worker = metrics.worker();
    assert_eq!(worker.model("_unknown"), worker.unknown_model());
    assert_eq!(worker.model(""), worker.unknown_model());
    let other = worker.model("_other");
    assert_ne!(other, worker.unknown_model());
    assert_eq!(overflow(&openmetrics::read(&metrics.text())), 0.0);
    assert_eq!(worker.model("any"), other);
    assert_eq!(overflow(&openmetrics::read(&metrics.text())), 1.0);
}

#[test]
fn a_slot_that_is_not_the_workers_own_counts_as_unknown() {
    let metrics = Metrics::new(Options::default());
    let (mut maker, mut worker) = (metrics.worker(), metrics.worker());
    let foreign = maker.model("foreign");
    worker.begin(foreign);
    worker.end(foreign, &plain("foreign"));
    let page = openmetrics::read(&metrics.text());
    let labels = [("model", "_unknown"), ("dialect", "openai_chat"), ("ending", "complete")];
    assert_eq!(page.get("tokenmeter_exchanges_total", &labels), Some(1.0));
}

fn labels(page: &Page) -> usize {
    page.samples.keys().filter(|series| series.name == "tokenmeter_exchanges_in_flight").count()
}

fn overflow(page: &Page) -> f64 {
    page.get("tokenmeter_dropped_total", &[("what", "label_overflow")]).unwrap()
}
