//! Money on the page: exact to the pico-unit, under capped names, each currency separately.

use meter::Observer;
use metrics::{
    BUDGET_THRESHOLDS, Basis, BudgetReading, Currency, Metric, Metrics, Options, ReloadedFile, Unit,
};

use crate::openmetrics::{self, Page};
use crate::records::plain;

fn page(metrics: &Metrics) -> Page {
    openmetrics::read(&metrics.text())
}

fn euros() -> Metrics {
    Metrics::new(Options { currency: Currency::new("eur").unwrap(), ..Options::default() })
}

#[test]
fn charges_are_summed_exactly() {
    let metrics = Metrics::new(Options::default());
    // A float that had this sum could not count the pico-dollars that follow.
    metrics.charge("a", "m", Basis::Price, 9_000_000_000_000_000_000_000);
    for _ in 0..1_000_000 {
        metrics.charge("a", "m", Basis::Price, 1);
    }
    metrics.charge("a", "m", Basis::Price, 1_000_000_000_000 - 1_000_000);
    metrics.charge("a", "m", Basis::Price, -5);
    metrics.charge("b", "m", Basis::Price, 0);
    let page = page(&metrics);
    let of =
        |tenant| page.get("tokenmeter_tenant_spend_usd_total", &[("tenant", tenant), ("basis", "price")]);
    assert_eq!(of("a"), Some(9_000_000_001.0), "a negative charge adds 0");
    assert_eq!(of("b"), Some(0.0), "a charge of 0 creates the series");
    let gpu = [("tenant", "a"), ("basis", "gpu")];
    assert_eq!(page.get("tokenmeter_tenant_spend_usd_total", &gpu), None, "no charge on the basis gpu");
}

#[test]
fn names_contain_currency_and_gpu_costs_dollars() {
    let metrics = euros();
    let mut worker = metrics.worker();
    let model = worker.model("m");
    worker.begin(model);
    worker.end(model, &plain("m"));
    metrics.charge("a", "m", Basis::Price, 2_500_000_000_000);
    metrics.charge("a", "m", Basis::Gpu, 1_250_000_000_000);
    metrics.budgets(vec![BudgetReading {
        tenant: "a".into(),
        period: "month".into(),
        soft_pico: Some(3_000_000_000_000),
        used_pico: 2_500_000_000_000,
        ..BudgetReading::default()
    }]);
    let page = page(&metrics);
    for (family, label) in [("tenant", ("tenant", "a")), ("model", ("model", "m"))] {
        for (word, basis, sum) in [("eur", "price", 2.5), ("usd", "gpu", 1.25)] {
            let name = format!("tokenmeter_{family}_spend_{word}_total");
            assert_eq!(page.get(&name, &[label, ("basis", basis)]), Some(sum), "{name}");
            assert_eq!(page.sum(&name), sum, "{name}: one basis only");
        }
    }
    let budget = [("tenant", "a"), ("period", "month")];
    assert_eq!(page.get("tokenmeter_budget_used_eur", &budget), Some(2.5));
    assert_eq!(
        page.get("tokenmeter_budget_limit_eur", &[budget[0], budget[1], ("limit", "soft")]),
        Some(3.0)
    );
    // Besides the two families in dollars only GPU costs remain.
    let dollars = page.families.iter().filter(|family| family.name.ends_with("_usd"));
    let dollars: Vec<_> = dollars.map(|family| family.name.as_str()).collect();
    let expected = [
        "tokenmeter_gpu_cost_usd",
        "tokenmeter_gpu_idle_cost_usd",
        "tokenmeter_gpu_unattributed_cost_usd",
        "tokenmeter_tenant_spend_usd",
        "tokenmeter_model_spend_usd",
    ];
    assert_eq!(dollars, expected);
}

#[test]
fn money_name_contains_currency_once() {
    assert!(["", "EU", "EURO", "E R", "ÄB"].iter().all(|code| Currency::new(code).is_none()));
    let euro = Currency::new("EUR").unwrap();
    assert_eq!((euro.code().as_str(), euro.word().as_str()), ("EUR", "eur"));
    let mut money = 0;
    for metric in Metric::ALL {
        let entry = metric.entry();
        assert_eq!(entry.name_in(Currency::USD), entry.name);
        if entry.unit == Unit::Money {
            assert_eq!(entry.name.matches("usd").count(), 1, "{}", entry.name);
            assert_eq!(entry.name_in(euro), entry.name.replace("_usd", "_eur"));
            assert_eq!(entry.otlp_name_in(euro), entry.otlp_name().replace("_usd", "_eur"));
            assert_eq!(entry.otlp_unit_in(euro), "{EUR}");
            money += 1;
        } else {
            assert_eq!(entry.name_in(euro), entry.name);
            assert_eq!(entry.otlp_name_in(euro), entry.otlp_name());
            assert_eq!(entry.otlp_unit_in(euro), entry.otlp_unit());
        }
    }
    assert!(money >= 5, "only {money}");
}

#[test]
fn workers_and_control_plane_agree_about_other() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    let model = worker.model("m");
    metrics.charge("before any exchange", "m", Basis::Price, 1_000_000_000_000);
    for at in 0..150 {
        let mut record = plain("m");
        record.identity.tenant = format!("tenant-{at}").into();
        worker.begin(model);
        worker.end(model, &record);
        metrics.charge(&record.identity.tenant, "m", Basis::Price, 1_000_000_000_000);
    }
    metrics.budgets(
        (0..150)
            .map(|at| BudgetReading {
                tenant: format!("tenant-{at}").into(),
                period: "day".into(),
                hard_pico: Some(2_000_000_000_000),
                used_pico: 1_000_000_000_000,
                forecast_pico: (at % 2 == 0).then_some(3_000_000_000_000),
                ..BudgetReading::default()
            })
            .collect(),
    );
    for threshold in BUDGET_THRESHOLDS {
        metrics.budget_alert("tenant-149", "day", threshold);
    }
    assert_eq!(&*metrics.tenant_label("tenant-98"), "tenant-98");
    assert_eq!(&*metrics.tenant_label("tenant-99"), "_other");
    assert_eq!(&*metrics.tenant_label(""), "_unknown");
    let page = page(&metrics);
    let of = |name: &str, tenant: &str, more: &[(&str, &str)]| {
        page.get(name, &[&[("tenant", tenant)], more].concat())
    };
    let exchanges = |tenant| of("tokenmeter_tenant_exchanges_total", tenant, &[("ending", "complete")]);
    let spend = |tenant| of("tokenmeter_tenant_spend_usd_total", tenant, &[("basis", "price")]);
    assert_eq!((exchanges("before any exchange"), spend("before any exchange")), (None, Some(1.0)));
    for (tenant, n) in
        [("tenant-0", Some(1.0)), ("tenant-98", Some(1.0)), ("tenant-99", None), ("_other", Some(51.0))]
    {
        assert_eq!((exchanges(tenant), spend(tenant)), (n, n), "{tenant}");
    }
    assert_eq!(page.sum("tokenmeter_tenant_spend_usd_total"), 151.0);
    assert_eq!(page.sum("tokenmeter_tenant_tokens_total"), 150.0 * 31.0);
    let day = [("period", "day")];
    assert_eq!(of("tokenmeter_budget_used_usd", "_other", &day), Some(51.0));
    assert_eq!(of("tokenmeter_budget_limit_usd", "_other", &[day[0], ("limit", "hard")]), Some(102.0));
    assert_eq!(of("tokenmeter_budget_forecast_usd", "tenant-1", &day), None);
    assert_eq!(of("tokenmeter_budget_forecast_usd", "_other", &day), Some(75.0));
    let alerts = |tenant| of("tokenmeter_budget_alerts_total", tenant, &[day[0], ("threshold", "100")]);
    assert_eq!((alerts("_other"), alerts("tenant-0")), (Some(1.0), Some(0.0)));
}

#[test]
fn unpriced_exchange_is_counted_and_not_charged() {
    let metrics = Metrics::new(Options::default());
    let mut worker = metrics.worker();
    worker.model("m");
    metrics.unpriced("m", "model");
    metrics.unpriced("m", "model");
    metrics.unpriced("never accepted", "no_book");
    metrics.unpriced_tier("m");
    metrics.unpriced_tier("m");
    metrics.unpriced_tier("m");
    let page = page(&metrics);
    let of = |model, reason| {
        page.get("tokenmeter_unpriced_exchanges_total", &[("model", model), ("reason", reason)])
    };
    assert_eq!((of("m", "model"), of("_unknown", "no_book")), (Some(2.0), Some(1.0)));
    assert_eq!(page.get("tokenmeter_unpriced_tier_exchanges_total", &[("model", "m")]), Some(3.0));
    assert_eq!(page.sum("tokenmeter_model_spend_usd_total"), 0.0);
}

#[test]
fn control_series_exist_only_once_counted() {
    let metrics = Metrics::new(Options::default());
    let control_series = |page: &Page| {
        let ours = |name: &str| {
            [
                "tokenmeter_ledger_",
                "tokenmeter_ship_",
                "tokenmeter_usage_events_",
                "tokenmeter_config_",
                "tokenmeter_budget_",
            ]
            .iter()
            .any(|start| name.starts_with(start))
        };
        page.samples.keys().filter(|one| ours(&one.name)).count()
    };
    assert_eq!(control_series(&page(&metrics)), 0);
    assert_eq!(page(&metrics).get("tokenmeter_dropped_total", &[("what", "ledger_row")]), None);
    metrics.reloaded(ReloadedFile::Prices, true);
    metrics.reloaded(ReloadedFile::Prices, false);
    metrics.budget_webhooks([7, 8, 9]);
    let page = page(&metrics);
    for (name, labels, value) in [
        ("budget_webhooks_total", &[("outcome", "failed")][..], Some(8.0)),
        ("config_last_reload_success", &[("file", "prices")], Some(0.0)),
        ("config_last_reload_success", &[("file", "tenants")], None),
        ("config_reloads_total", &[("file", "prices"), ("outcome", "loaded")], Some(1.0)),
        ("config_reloads_total", &[("file", "prices"), ("outcome", "refused")], Some(1.0)),
    ] {
        assert_eq!(page.get(&format!("tokenmeter_{name}"), labels), value, "{name} {labels:?}");
    }
}
