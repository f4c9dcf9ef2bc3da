//! Objectives on the page, and the cap of tenants.

use meter::Ending;
use meter::Observer;
use metrics::{Metrics, Options};

use crate::openmetrics;
use crate::records::{plain, refused};
use crate::twin::objectives;

#[test]
fn no_objective_no_series() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("qwen3-8b");
    worker.begin(model);
    worker.end(model, &plain("qwen3-8b"));
    let page = openmetrics::read(&metrics.text());
    let series = page
        .samples
        .keys()
        .filter(|series| series.name.contains("objective") || series.name.contains("goodput"));
    assert_eq!(series.count(), 0);
}

#[test]
fn verdicts_and_goodput_are_counted() {
    let metrics = Metrics::new(Options { objectives: objectives(), ..Options::default() });
    let mut worker = metrics.worker();
    let model = worker.model("mistral");
    let mut end = |record: &meter::Record| {
        worker.begin(model);
        worker.end(model, record);
    };
    // 100 tokens per second and 50 ms: met. A refusal by the server: failed. A client that left: no verdict.
    end(&plain("mistral"));
    end(&refused("mistral"));
    end(&meter::Record { ending: Ending::ClientAbort, ..plain("mistral") });
    let page = openmetrics::read(&metrics.text());
    let verdict = |verdict| {
        let labels = [("model", "mistral"), ("objective", "rest"), ("verdict", verdict)];
        page.get("tokenmeter_objective_exchanges_total", &labels)
    };
    assert_eq!(verdict("met"), Some(1.0));
    assert_eq!(verdict("failed"), Some(1.0));
    assert_eq!(verdict("slow_both"), Some(0.0), "every verdict has a series from the first one on");
    assert_eq!(page.sum("tokenmeter_objective_exchanges_total"), 2.0);
    assert_eq!(page.sum("tokenmeter_goodput_exchanges_total"), 1.0);
    assert_eq!(page.sum("tokenmeter_goodput_tokens_total"), 11.0);
    assert_eq!(page.sum("tokenmeter_objective_tokens_total"), 11.0);
}

#[test]
fn series_of_many_tenants_stay_within_cap() {
    let metrics = Metrics::new(Options { objectives: objectives(), ..Options::default() });
    let mut workers = [metrics.worker(), metrics.worker()];
    for at in 0..1000 {
        let worker = &mut workers[at % 2];
        let model = worker.model("llama-3");
        // Each name twice, by both workers.
        for _ in 0..2 {
            let mut record = plain("llama-3");
            record.identity.tenant = format!("team-{}", at / 2).into();
            worker.begin(model);
            worker.end(model, &record);
        }
    }
    let page = openmetrics::read(&metrics.text());
    let name = "tokenmeter_tenant_objective_exchanges_total";
    assert_eq!(page.sum(name), 2000.0);
    let other = page.get(name, &[("tenant", "_other"), ("objective", "llama"), ("verdict", "met")]);
    assert_eq!(other, Some(1600.0), "a hundred of five hundred have a label");
    let tenants = page.samples.keys().filter(|series| series.name == name).count();
    assert_eq!(tenants, 101 * 5);
    let lost = page.get("tokenmeter_dropped_total", &[("what", "label_overflow")]);
    assert_eq!(lost, Some(1600.0));
}
