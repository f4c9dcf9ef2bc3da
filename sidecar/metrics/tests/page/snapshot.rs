//! The sums of the live page.

use meter::{Ending, Observer, Passthrough, Provenance, Refusal, TokenType};
use metrics::{Basis, Metric, Metrics, ModelSnapshot, Objective, Options, Sample, UNPRICED, Value, units};
use proptest::collection::vec;
use proptest::test_runner::{Config as ProptestConfig, TestRunner};

use crate::random::any_record;
use crate::records::{plain, refused};

#[test]
fn snapshot_sums_workers_and_interpolates_quantiles() {
    let metrics = Metrics::new(Options::default());
    metrics.set_upstream_up("gpu-1", true);
    let mut workers = [metrics.worker(), metrics.worker()];
    for (at, worker) in workers.iter_mut().enumerate() {
        let model = worker.model("qwen3-8b");
        for ms in 1..=50u64 {
            worker.begin(model);
            let mut record = plain("qwen3-8b");
            // 1 to 100 ms over both workers, 1 to 100 tokens per second.
            record.timing.first_token_ns = Some((ms + 50 * at as u64) * 1_000_000);
            record.timing.output_rate = Some((ms + 50 * at as u64) as f64);
            record.timing.concurrency = ms as f64;
            worker.live(model, 11, 0);
            worker.end(model, &record);
        }
        worker.begin(model);
        worker.end(model, &refused("qwen3-8b"));
        worker.begin(model);
        worker.end(model, &meter::Record { ending: Ending::ClientAbort, ..refused("qwen3-8b") });
        worker.begin(model);
        worker.passthrough(Passthrough::Path);
        worker.refuse(Refusal::Host);
    }

    let snapshot = metrics.snapshot();
    assert_eq!((snapshot.passthrough, snapshot.refused, snapshot.dropped), (2, 2, 0));
    let names: Vec<_> = snapshot.models.iter().map(|model| &*model.model).collect();
    assert_eq!(names, ["_unknown", "qwen3-8b"]);
    let model = &snapshot.models[1];
    assert_eq!((model.exchanges, model.in_flight), (104, 2));
    let ended = |ending: Ending| model.endings[ending as usize];
    let endings = [Ending::Complete, Ending::ErrorStatus, Ending::ClientAbort];
    assert_eq!(endings.map(ended), [100, 2, 2]);
    let reported = model.tokens[Provenance::Reported as usize];
    assert_eq!(reported[TokenType::InputCached as usize], 500);
    assert_eq!((model.output_tokens, model.live_output_tokens), (1100, 1100));
    // 50 ms is the middle of the bucket from 40 to 60 ms, in which the observations are evenly distributed.
    assert!((model.first_token.quantile(0.5).unwrap() - 0.050).abs() < 1e-9);
    assert!((model.first_token.quantile(0.99).unwrap() - 0.099).abs() < 1e-9);
    assert!((model.output_rate.quantile(0.5).unwrap() - 50.0).abs() < 1e-9);
    assert_eq!(snapshot.models[0], ModelSnapshot::empty(&"_unknown".into()));
}

/// Every label's numbers of a random activity are those of the page.
#[test]
fn snapshot_equals_the_page() {
    let config = ProptestConfig { failure_persistence: None, ..chance::cases(40) };
    TestRunner::new(config)
        .run(&vec(any_record(), 1..20), |records| {
            let objective = Objective {
                name: "chat".into(),
                models: Vec::new(),
                tenants: Vec::new(),
                first_token_ns: 1_000_000_000,
                output_rate: 30.0,
                target_ratio: 0.99,
            };
            let metrics = Metrics::new(Options { objectives: vec![objective], ..Options::default() });
            let mut workers = [metrics.worker(), metrics.worker()];
            for (at, record) in records.iter().enumerate() {
                let worker = &mut workers[at % 2];
                let model = worker.model(&record.identity.model);
                worker.begin(model);
                worker.live(model, 3, 0);
                worker.end(model, record);
                worker.begin(model);
                let (tenant, model) = (&record.identity.tenant, &record.identity.model);
                metrics.charge(tenant, model, Basis::Price, 7_000_000_000_000);
                metrics.charge(tenant, model, Basis::Gpu, 1);
                metrics.unpriced(model, UNPRICED[0]);
            }
            let (snapshot, page) = (metrics.snapshot(), metrics.reading());
            let sum = |metric: Metric, labels: &[(usize, &str)]| {
                let family = page.families.iter().find(|family| family.metric == metric).unwrap();
                let has = |sample: &&Sample| labels.iter().all(|(at, value)| &*sample.labels[*at] == *value);
                family.samples.iter().filter(has).map(|sample| number(&sample.value)).sum::<f64>()
            };
            for model in &snapshot.models {
                let name = &*model.model;
                assert_eq!(model.in_flight as f64, sum(Metric::InFlight, &[(0, name)]));
                assert_eq!(model.live_output_tokens as f64, sum(Metric::LiveTokens, &[(0, name)]));
                assert_eq!(model.exchanges as f64, sum(Metric::Exchanges, &[(0, name)]));
                for (ending, n) in Ending::ALL.iter().zip(model.endings) {
                    assert_eq!(n as f64, sum(Metric::Exchanges, &[(0, name), (3, ending.name())]));
                }
                for (provenance, types) in Provenance::ALL.iter().zip(model.tokens) {
                    for (kind, n) in TokenType::ALL.iter().zip(types) {
                        let labels = [(0, name), (1, kind.name()), (2, provenance.name())];
                        assert_eq!(n as f64, sum(Metric::Tokens, &labels));
                    }
                }
                assert_eq!(model.first_token.count() as f64, sum(Metric::FirstToken, &[(0, name)]));
                assert_eq!(model.output_rate.count() as f64, sum(Metric::OutputRate, &[(0, name)]));
                assert_eq!(model.verdicts.judged as f64, sum(Metric::ObjectiveExchanges, &[(0, name)]));
                assert_eq!(model.verdicts.met as f64, sum(Metric::GoodputExchanges, &[(0, name)]));
                let spend = model.spend_pico.map_or(0.0, units);
                assert_eq!(spend, sum(Metric::ModelSpend, &[(0, name), (1, "price")]));
                assert_eq!(model.unpriced as f64, sum(Metric::Unpriced, &[(0, name)]));
            }
            for tenant in &snapshot.tenants {
                let name = &*tenant.tenant;
                for (ending, n) in Ending::ALL.iter().zip(tenant.endings) {
                    assert_eq!(n as f64, sum(Metric::TenantExchanges, &[(0, name), (1, ending.name())]));
                }
                for (kind, n) in TokenType::ALL.iter().zip(tenant.tokens) {
                    assert_eq!(n as f64, sum(Metric::TenantTokens, &[(0, name), (1, kind.name())]));
                }
                let judged = sum(Metric::TenantObjectiveExchanges, &[(0, name)]);
                assert_eq!(tenant.verdicts.judged as f64, judged);
                let met = sum(Metric::TenantObjectiveExchanges, &[(0, name), (2, "met")]);
                assert_eq!(tenant.verdicts.met as f64, met);
                let spend = tenant.spend_pico.map_or(0.0, units);
                assert_eq!(spend, sum(Metric::TenantSpend, &[(0, name), (1, "price")]));
            }
            Ok(())
        })
        .unwrap();
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Count(n) => *n as f64,
        Value::Number(number) => *number,
        Value::Histogram(histogram) => histogram.count() as f64,
    }
}

#[test]
fn shown_tenants_are_labels_and_create_none() {
    let metrics = Metrics::new(Options::default());
    (0..99).for_each(|n| drop(metrics.tenant_label(&format!("t{n}"))));
    let shown = metrics.shown_tenants(["t7", "new\u{1b}", "beyond", "t8", "", "_x"].into_iter());
    assert_eq!(shown, ["t7", "new\u{fffd}", "_other", "t8", "_unknown", "_other"].map(Into::into));
    assert_eq!(metrics.snapshot().tenants.len(), 99);
}
