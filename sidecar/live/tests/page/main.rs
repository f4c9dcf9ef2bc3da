//! The current state and the metrics page have the same numbers, for a random activity.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

#[expect(dead_code, reason = "shared with the tests of the page's numbers")]
#[path = "../../../metrics/tests/page/openmetrics.rs"]
mod openmetrics;
#[path = "../../../metrics/tests/page/random.rs"]
mod random;
#[expect(dead_code, reason = "shared with the tests of the page's numbers")]
#[path = "../../../metrics/tests/page/records.rs"]
mod records;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use live::{Energy, Engine, Gpu, LedgerState, Now, Recorder, Scope, Upstream};
use meter::Observer;
use metrics::{
    Basis, BudgetReading, EngineReading, Metric, Metrics, Options, Part, SampleWriter, Samples, UNPRICED,
};
use proptest::collection::vec;
use proptest::prelude::*;

use openmetrics::Page;
use random::any_record;

/// Returns the sum of the samples that have these label values.
fn sum(page: &Page, name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples = page.samples.iter().filter(|(series, _)| {
        let has = |label: &str, value: &str| series.labels.get(label).is_some_and(|known| known == value);
        series.name == name && labels.iter().all(|(label, value)| has(label, value))
    });
    samples.map(|(_, value)| value).sum()
}

fn assert_totals(page: &Page, scope: &Scope, label: Option<(&str, &str)>, prefix: &str) {
    let read = |name: &str, more: &[(&str, &str)]| {
        let labels: Vec<_> = label.iter().chain(more).copied().collect();
        sum(page, name, &labels)
    };
    let totals = &scope.totals;
    let exchanges = format!("{prefix}exchanges_total");
    assert_eq!(totals.exchanges as f64, read(&exchanges, &[]));
    assert_eq!(totals.aborts as f64, read(&exchanges, &[("ending", "client_abort")]));
    let well = ["complete", "length", "client_abort"].map(|ending| read(&exchanges, &[("ending", ending)]));
    assert_eq!(totals.errors as f64, read(&exchanges, &[]) - well.iter().sum::<f64>());
    let tokens = format!("{prefix}tokens_total");
    assert_eq!(totals.tokens.values().sum::<u64>() as f64, read(&tokens, &[]));
    for (kind, n) in &totals.tokens {
        assert_eq!(*n as f64, read(&tokens, &[("type", kind)]));
    }
    for (provenance, n) in totals.output_provenance.iter().flatten() {
        let output = ["output", "output_reasoning", "output_audio", "output_image", "output_video"];
        let known = output.map(|kind| read(&tokens, &[("type", kind), ("provenance", provenance)]));
        assert_eq!(*n as f64, known.iter().sum::<f64>(), "{provenance}");
    }
    if let Some(live) = totals.live_output_tokens {
        assert_eq!(live as f64, read("tokenmeter_live_output_tokens_total", &[]));
    }
    let spend = match label {
        Some(("tenant", _)) => "tokenmeter_tenant_spend_usd_total",
        _ => "tokenmeter_model_spend_usd_total",
    };
    assert_eq!(totals.spend, Some(read(spend, &[("basis", "price")])));
    if let Some(unpriced) = totals.unpriced_exchanges {
        assert_eq!(unpriced as f64, read("tokenmeter_unpriced_exchanges_total", &[]));
    }
}

/// Parts with one GPU, a ledger, a price book and connections.
struct Parts;

impl Samples for Parts {
    fn write(&self, to: &mut SampleWriter) {
        to.count(Metric::GpuInfo, &["GPU-1", "H100 <b>", "nvidia", "", "", "nvml", "", "false"], 1);
        to.count(Metric::GpuUp, &["GPU-1"], 1);
        to.number(Metric::HwUtilization, &["GPU-1"], 0.5);
        to.count(Metric::HwMemoryUsage, &["GPU-1"], 40);
        to.count(Metric::HwMemoryLimit, &["GPU-1"], 80);
        to.number(Metric::HwPower, &["GPU-1", "gpu"], 300.0);
        to.number(Metric::GpuPowerLimit, &["GPU-1"], 700.0);
        to.number(Metric::EnergyIdle, &["GPU-1"], 1.0);
        to.number(Metric::EnergyUnattributed, &["GPU-1"], 2.0);
        to.number(Metric::EnergyPending, &["GPU-1"], 3.0);
        to.count(Metric::LedgerUp, &[], 1);
        to.count(Metric::LedgerRows, &[], 7);
        to.number(Metric::LedgerLag, &[], 0.5);
        to.count(Metric::LedgerLost, &[], 2);
        to.count(Metric::PriceBookInfo, &["v1", "hash", "USD"], 1);
        to.count(Metric::Connections, &[], 5);
        to.count(Metric::Dropped, &[metrics::LEDGER_ROW], 2);
    }
}

fn now(metrics: &Metrics) -> Now {
    Recorder::default().sample(Instant::now(), &metrics.snapshot())
}

proptest! {
    #![proptest_config(chance::cases(40))]

    #[test]
    fn totals_are_those_of_the_metrics_page(records in vec(any_record(), 1..20)) {
        let metrics = Metrics::new(Options::default());
        metrics.set(Part::Prices, Arc::new(Parts));
        let mut workers = [metrics.worker(), metrics.worker()];
        for (at, record) in records.iter().enumerate() {
            let worker = &mut workers[at % 2];
            let (tenant, model) = (&record.identity.tenant, &record.identity.model);
            let slot = worker.model(model);
            worker.begin(slot);
            worker.live(slot, 3, 0);
            worker.end(slot, record);
            worker.begin(slot);
            metrics.charge(tenant, model, Basis::Price, 1_500_000_000_000);
            metrics.unpriced(model, UNPRICED[0]);
        }
        let (now, page) = (now(&metrics), openmetrics::read(&metrics.text()));
        assert_totals(&page, &now.all, None, "tokenmeter_");
        for model in &now.models {
            assert_totals(&page, model, Some(("model", &model.name)), "tokenmeter_");
        }
        for tenant in &now.tenants {
            assert_totals(&page, tenant, Some(("tenant", &tenant.name)), "tokenmeter_tenant_");
        }
        for (ending, n) in &now.endings {
            prop_assert_eq!(*n as f64, sum(&page, "tokenmeter_exchanges_total", &[("ending", ending)]));
        }
        prop_assert_eq!(now.meter.dropped as f64, sum(&page, "tokenmeter_dropped_total", &[]));
    }
}

#[test]
fn parts_are_shown() {
    let metrics = Metrics::new(Options::default());
    metrics.set(Part::Gpus, Arc::new(Parts));
    let now = now(&metrics);
    assert_eq!(
        now.gpus,
        [Gpu {
            id: "GPU-1".to_owned(),
            name: "H100 <b>".to_owned(),
            up: true,
            utilization_ratio: Some(0.5),
            memory_used_bytes: Some(40.0),
            memory_limit_bytes: Some(80.0),
            power_watts: Some(300.0),
            power_limit_watts: Some(700.0),
            temperature_celsius: None,
        }]
    );
    let energy =
        Energy { attributed_joules: 0.0, idle_joules: 1.0, unattributed_joules: 2.0, pending_joules: 3.0 };
    assert_eq!(now.energy, Some(energy));
    let ledger = LedgerState { up: true, rows: 7, commit_lag_seconds: 0.5, lost_rows: 2 };
    assert_eq!((now.ledger, now.meter.connections, now.meter.dropped), (Some(ledger), 5, 2));
    assert_eq!(now.currency.as_deref(), Some("USD"));
    let empty = Recorder::default().sample(Instant::now(), &Metrics::new(Options::default()).snapshot());
    assert_eq!((empty.gpus.len(), empty.energy, empty.ledger, empty.currency), (0, None, None, None));
    assert_eq!((empty.models.len(), empty.tenants.len()), (0, 0), "an idle process has no rows");
}

#[test]
fn engine_has_the_time_of_its_read() {
    let metrics = Metrics::new(Options::default());
    let engine = |metrics: &Metrics| Engine::of(&metrics.snapshot(), "chat");
    metrics.engine("chat", EngineReading::default());
    assert_eq!(engine(&metrics), None, "its page is not read");
    let read_at = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_550_385_000));
    let running_requests = Some(3.0);
    metrics.engine(
        "chat",
        EngineReading { up: Some(true), read_at, running_requests, ..EngineReading::default() },
    );
    let read_unix_ms = Some(1_795_550_385_000);
    let read = Engine { up: true, read_unix_ms, running_requests, ..Engine::default() };
    assert_eq!(engine(&metrics), Some(read));
}

#[test]
fn verification_is_that_of_the_metrics_page() {
    let metrics = Metrics::new(Options::default());
    metrics.set_upstream_verified("open", false);
    metrics.set_upstream_verified("checked", true);
    let (snapshot, page) = (metrics.snapshot(), openmetrics::read(&metrics.text()));
    for upstream in ["open", "checked"] {
        let verified = sum(&page, "tokenmeter_upstream_tls_verified", &[("upstream", upstream)]) == 1.0;
        assert_eq!(Upstream::is_verified(&snapshot, upstream), Some(verified), "{upstream}");
    }
    assert_eq!(Upstream::is_verified(&snapshot, "open"), Some(false));
    assert_eq!(Upstream::is_verified(&snapshot, "plain"), None, "it has no TLS");
}

#[test]
fn rows_are_the_busiest_and_the_rest_is_counted() {
    let metrics = Metrics::new(Options { models: 200, ..Options::default() });
    let mut worker = metrics.worker();
    for n in 0..130_u64 {
        let slot = worker.model(&format!("m{n:03}"));
        worker.begin(slot);
        worker.live(slot, n, 0);
    }
    let now = now(&metrics);
    assert_eq!((now.models.len(), now.unlisted), (Now::ROWS, 30));
    assert_eq!((&*now.models[0].name, &*now.models[99].name), ("m129", "m030"));
    assert_eq!(now.all.totals.live_output_tokens, Some((0..130).sum()), "all traffic is that of every model");
}

#[test]
fn budget_with_the_greatest_share_is_shown() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let slot = worker.model("m");
    worker.begin(slot);
    worker.end(slot, &records::plain("m"));
    let tenant = &records::plain("m").identity.tenant;
    let budget = |period: &str, hard_pico, soft_pico, used_pico| BudgetReading {
        tenant: Arc::clone(tenant),
        period: period.into(),
        hard_pico,
        soft_pico,
        used_pico,
        forecast_pico: None,
    };
    const UNIT: i128 = 1_000_000_000_000;
    metrics.budgets(vec![
        budget("day", Some(10 * UNIT), None, 5 * UNIT),
        budget("month", None, Some(20 * UNIT), 15 * UNIT),
        budget("week", None, None, 99 * UNIT),
    ]);
    let shown = now(&metrics).tenants[0].budget.clone().unwrap();
    assert_eq!((&*shown.period, shown.limit, shown.used), ("month", 20.0, 15.0));
}
