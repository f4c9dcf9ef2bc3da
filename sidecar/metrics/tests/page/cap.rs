//! Labels stay within the cap for any number of names. (`tests/cardinality` measures a million.)

use std::collections::BTreeMap;
use std::sync::Arc;

use meter::Observer;
use metrics::{Basis, Metrics, Options};

use crate::control::Numbered;
use crate::openmetrics::{self, Page};
use crate::records::plain;

#[test]
fn label_of_another_worker_is_found_at_cap() {
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
fn rejected_request_finds_label_but_creates_none() {
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
    assert_eq!(overflow(&page), 1.0, "a look-up is no overflow");
    assert_eq!(labels(&page), 3);
}

/// Performs one exchange of a model.
fn exchange(worker: &mut impl Observer, model: &str) {
    let unknown = worker.unknown_model();
    worker.begin(unknown);
    let slot = worker.model(model);
    worker.admit(unknown, slot);
    worker.end(slot, &plain(model));
}

/// Returns the exchanges on the page by model.
fn exchanges(page: &Page) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (series, n) in &page.samples {
        if series.name == "tokenmeter_exchanges_total" {
            let (_, model) = series.labels.iter().find(|(name, _)| *name == "model").unwrap();
            *sums.entry(model.clone()).or_default() += n;
        }
    }
    sums
}

#[test]
fn busy_model_replaces_invented_name() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    for n in 0..55 {
        exchange(&mut worker, &format!("invented-{n}"));
    }
    let mut before = exchanges(&openmetrics::read(&metrics.text()));
    for n in 1..=8_u32 {
        exchange(&mut worker, "my-real-production-model");
        let now = exchanges(&openmetrics::read(&metrics.text()));
        assert_eq!(now.values().sum::<f64>(), f64::from(55 + n), "the sum is exact");
        assert!(now.iter().all(|(model, n)| before.get(model).is_none_or(|before| n >= before)), "{now:?}");
        assert!(now.len() <= 51, "{now:?}");
        before = now;
    }
    assert_eq!(before["my-real-production-model"], 7.0, "from its second exchange on");
    assert_eq!(before["_other"], 7.0);
}

/// An exchange under a capped label is counted, under `_other`: it is no loss.
#[test]
fn capped_label_is_no_loss_of_the_live_page() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let mut worker = metrics.worker();
    for model in ["first", "first", "second", "third"] {
        exchange(&mut worker, model);
    }
    let page = openmetrics::read(&metrics.text());
    assert!(page.get("tokenmeter_dropped_total", &[("what", "label_overflow")]) >= Some(1.0));
    assert_eq!(metrics.snapshot().dropped, 0);
}

/// One worker evicts the label while another has an exchange in flight under it.
#[test]
fn label_is_evicted_in_every_worker() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let (mut first, mut second) = (metrics.worker(), metrics.worker());
    exchange(&mut first, "old");
    let running = first.model("old");
    first.begin(running);
    first.live(running, 10, 0);
    exchange(&mut second, "new");
    exchange(&mut second, "new");
    first.live(running, 5, 0);
    first.end(running, &plain("old"));
    exchange(&mut first, "old");
    exchange(&mut first, "new");
    let page = openmetrics::read(&metrics.text());
    let seen: Vec<_> = exchanges(&page).into_iter().collect();
    assert_eq!(seen, [("_other".to_owned(), 4.0), ("new".to_owned(), 2.0)]);
    let in_flight = |model| page.get("tokenmeter_exchanges_in_flight", &[("model", model)]);
    assert_eq!((in_flight("_other"), in_flight("new"), in_flight("old")), (Some(0.0), Some(0.0), None));
    assert_eq!(page.get("tokenmeter_live_output_tokens_total", &[("model", "_other")]), Some(15.0));
}

/// The sums of the control plane move with the label.
#[test]
fn money_of_evicted_label_moves_to_other() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let mut worker = metrics.worker();
    exchange(&mut worker, "old");
    let attribute = |joules: &[(&str, f64)]| {
        let models: Vec<_> = joules.iter().map(|(model, joules)| (Arc::from(*model), *joules)).collect();
        let models = models.iter().map(|(model, joules)| (model, *joules));
        metrics.attribution([].into_iter(), models, Arc::new(Numbered(0)));
    };
    metrics.charge("default", "old", Basis::Price, 5_000_000_000_000);
    metrics.unpriced("old", "model");
    attribute(&[("old", 7.0)]);
    exchange(&mut worker, "new");
    exchange(&mut worker, "new");
    metrics.charge("default", "old", Basis::Price, 1_000_000_000_000);
    metrics.charge("default", "new", Basis::Price, 2_000_000_000_000);
    attribute(&[("old", 8.0), ("new", 1.0)]);
    let value = |name: &str, model: &str| {
        let page = openmetrics::read(&metrics.text());
        let of = page.samples.iter().filter(|(series, _)| {
            series.name == name && series.labels.iter().any(|(_, value)| value == model)
        });
        of.map(|(_, n)| *n).sum::<f64>()
    };
    assert_eq!(value("tokenmeter_model_spend_usd_total", "_other"), 6.0);
    assert_eq!(value("tokenmeter_model_spend_usd_total", "new"), 2.0);
    assert_eq!(value("tokenmeter_model_spend_usd_total", "old"), 0.0);
    assert_eq!(value("tokenmeter_unpriced_exchanges_total", "_other"), 1.0);
    let energy = "tokenmeter_energy_model_joules_total";
    assert_eq!((value(energy, "_other"), value(energy, "new")), (8.0, 1.0));
}

#[test]
fn reserved_labels_are_no_overflow() {
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
fn slot_of_another_worker_counts_as_unknown() {
    let metrics = Metrics::new(Options::default());
    let (mut maker, mut worker) = (metrics.worker(), metrics.worker());
    let foreign = maker.model("foreign");
    worker.begin(foreign);
    worker.end(foreign, &plain("foreign"));
    let page = openmetrics::read(&metrics.text());
    let labels =
        [("model", "_unknown"), ("upstream", "gpu-1"), ("dialect", "openai_chat"), ("ending", "complete")];
    assert_eq!(page.get("tokenmeter_exchanges_total", &labels), Some(1.0));
}

fn labels(page: &Page) -> usize {
    page.samples.keys().filter(|series| series.name == "tokenmeter_exchanges_in_flight").count()
}

fn overflow(page: &Page) -> f64 {
    page.get("tokenmeter_dropped_total", &[("what", "label_overflow")]).unwrap()
}
