//! Readings of accelerators, shares and exports on the page.

use std::sync::Arc;

use metrics::{
    Format, HistogramReading, Metric, Metrics, Options, Part, SampleWriter, Samples, Share, Value,
};

use meter::Observer;

use crate::openmetrics::{self, Page};

fn page(metrics: &Metrics) -> Page {
    openmetrics::read(&metrics.text())
}

/// A part with losses and exports, all of this number.
pub(crate) struct Numbered(pub(crate) u64);

impl Samples for Numbered {
    fn write(&self, to: &mut SampleWriter) {
        to.count(Metric::Dropped, &["part"], self.0);
        to.count(Metric::LedgerUp, &[], None);
        to.number(Metric::LedgerLag, &[], self.0 as f64);
        let odd = HistogramReading { buckets: vec![(1.0, 1)], ..HistogramReading::default() };
        to.histogram(Metric::OtlpExport, &["span"], odd);
    }
}

#[test]
fn parts_are_replaced_and_follow_workers() {
    let metrics = Metrics::new(Options::default());
    for (part, n) in [(Part::Store, 2), (Part::Ledger, 9), (Part::Ledger, 1)] {
        metrics.set(part, Arc::new(Numbered(n)));
    }
    let reading = metrics.reading();
    let samples = |metric| &reading.families.iter().find(|family| family.metric == metric).unwrap().samples;
    let of_parts = samples(Metric::Dropped).iter().rev().take(2).rev();
    assert!(of_parts.clone().all(|sample| &*sample.labels[0] == "part"), "after those of the workers");
    assert_eq!(
        of_parts.map(|sample| &sample.value).collect::<Vec<_>>(),
        [&Value::Count(1), &Value::Count(2)]
    );
    assert_eq!(samples(Metric::LedgerUp), &[], "an absent number has no sample");
    assert_eq!(samples(Metric::LedgerLag).len(), 2);
    assert_eq!(samples(Metric::OtlpExport), &[], "buckets that are not the table's are rejected");
}

#[test]
fn shares_are_summed_under_capped_names() {
    let metrics = Metrics::new(Options { models: 1, ..Options::default() });
    let mut worker = metrics.worker();
    worker.model("b");
    assert_eq!(&*metrics.model_label("a"), "_unknown", "it could still get a label");
    worker.model("a");
    let labels = ["b", "a", "_unknown", "_other", ""].map(|name| metrics.model_label(name));
    assert_eq!(labels.each_ref().map(|label| &**label), ["b", "_other", "_unknown", "_other", "_unknown"]);
    let share = |joules: f64, usd: Option<f64>| Share {
        energy_joules: joules,
        gpu_seconds: joules / 100.0,
        cost_usd: [usd, None],
    };
    let tenants: Vec<Arc<str>> = (0..150).map(|at| format!("tenant-{at:03}").into()).collect();
    let models = [("b", 10.0), ("a", 4.0), ("c", 2.0), ("b", 1.0)].map(|(name, n)| (Arc::from(name), n));
    for _ in 0..2 {
        let tenants = tenants.iter().map(|tenant| (tenant, share(1.0, Some(0.5))));
        let models = models.iter().map(|(model, joules)| (model, *joules));
        metrics.attribution(tenants, models, Arc::new(Numbered(3)));
        let page = page(&metrics);
        assert_eq!(page.sum("tokenmeter_energy_attributed_joules_total"), 150.0);
        assert_eq!(page.get("tokenmeter_dropped_total", &[("what", "part")]), Some(3.0), "set with them");
        assert_eq!(
            page.get("tokenmeter_energy_attributed_joules_total", &[("tenant", "_other")]),
            Some(50.0)
        );
        assert_eq!(page.get("tokenmeter_energy_model_joules_total", &[("model", "b")]), Some(11.0));
        assert_eq!(page.get("tokenmeter_energy_model_joules_total", &[("model", "_other")]), Some(6.0));
        assert_eq!(page.sum("tokenmeter_gpu_cost_usd_total"), 75.0);
    }
    for joules in [0.002, 0.2, f64::NAN, -1.0] {
        metrics.energy_per_output_token("b", joules);
        metrics.energy_per_output_token("a", joules);
    }
    let page = page(&metrics);
    let of = |what: &str, model: &str| {
        page.get(&format!("tokenmeter_request_energy_per_output_token_joules_{what}"), &[("model", model)])
    };
    assert_eq!((of("count", "b"), of("count", "_other")), (Some(2.0), Some(2.0)));
    assert_eq!(of("sum", "b"), Some(0.202));
}

#[test]
fn scrapes_are_counted_by_format() {
    let metrics = Metrics::new(Options::default());
    metrics.scrape(Format::Protobuf);
    metrics.scrape(Format::Protobuf);
    metrics.scrape(Format::Text);
    let page = page(&metrics);
    let scrapes = ["openmetrics", "protobuf", "text"]
        .map(|format| page.get("tokenmeter_scrapes_total", &[("format", format)]));
    assert_eq!(scrapes, [Some(0.0), Some(2.0), Some(1.0)]);
}
