//! Exact prices, GPUs by upstream, and the text of errors.

use std::collections::BTreeMap;
use std::time::Duration;

use gpu::{GpuName, Gpus, SourceChoice};
use origin::{Diagnostics, file};

use crate::plan::Plan;
use crate::plan::machine::Alone;
use crate::settings::RawSettings;

fn make(yaml: &str) -> Result<Plan, Diagnostics> {
    make_on(Alone(&[]), yaml)
}

fn make_on(machine: Alone, yaml: &str) -> Result<Plan, Diagnostics> {
    let file = file::parse("t.yaml", yaml).expect("it is YAML");
    Plan::make(&RawSettings::merge(&BTreeMap::new(), &|_| None, Some(file)), &machine)
}

fn plan(yaml: &str) -> gpu::Plan {
    make(yaml).unwrap_or_else(|errors| panic!("{errors}")).gpu.expect("GPUs are read")
}

#[test]
fn default_is_every_gpu() {
    let plan = plan("upstream: http://a");
    assert_eq!(
        (plan.source, plan.period, plan.stale_periods),
        (SourceChoice::Auto, Duration::from_secs(1), 5)
    );
    assert_eq!((plan.prices.hour_pico, plan.prices.kwh_pico, plan.prices.pue_micro), (0, 0, 1_000_000));
    assert_eq!(plan.upstreams[0].gpus, None, "one upstream has them all");
}

#[test]
fn prices_are_exact() {
    let plan = plan("upstream: http://a\ngpu_hour_usd: 2.49\nkwh_usd: 0.123456\npue: 1.25");
    assert_eq!(plan.prices.hour_pico, 2_490_000_000_000);
    assert_eq!(plan.prices.kwh_pico, 123_456_000_000);
    assert_eq!(plan.prices.pue_micro, 1_250_000);
}

#[test]
fn effectiveness_below_one_is_an_error() {
    let shown = make("upstream: http://a\npue: 0.5").expect_err("it is less than 1").to_string();
    assert!(shown.starts_with("t.yaml:2: `0.5` is less than 1"), "{shown}");
}

#[test]
fn each_upstream_has_its_gpus() {
    let plan = plan(
        "upstreams:\n- url: http://a\n  gpus: [0, GPU-x]\n- url: http://b\n  listen: 127.0.0.1:1\n  gpus: all\n\
         - url: http://c\n  listen: 127.0.0.1:2\n  gpus: []\n",
    );
    let gpus: Vec<_> = plan.upstreams.into_iter().map(|upstream| upstream.gpus.expect("said")).collect();
    let these = Gpus::These(vec![GpuName::Index(0), GpuName::Uuid("GPU-x".into())]);
    assert_eq!(gpus, [these, Gpus::All, Gpus::These(Vec::new())]);
}

#[test]
fn inexact_price_is_an_error() {
    for (text, pico) in [
        ("2.490000", Some(2_490_000_000_000)),
        ("+02.49", Some(2_490_000_000_000)),
        ("249e-2", Some(2_490_000_000_000)),
        ("1_0.5", Some(10_500_000_000_000)),
        ("-0", Some(0)),
        ("18446744.073709551615", Some(u64::MAX)),
        ("18446744.073709551616", None),
        ("0.0000000000001", None),
        ("-0.1", None),
        ("_1", None),
        ("\" 1\"", None),
        ("1e99", None),
    ] {
        let made = make(&format!("upstream: http://a\ngpu: nvml\ngpu_hour_usd: {text}"));
        match pico {
            Some(pico) => assert_eq!(made.expect(text).gpu.expect("named").prices.hour_pico, pico, "{text}"),
            None => {
                assert!(made.expect_err(text).to_string().contains("` is not a number of dollars"), "{text}")
            }
        }
    }
}

#[test]
fn exporter_has_a_page_and_a_node() {
    let plan = plan("upstream: http://a\ngpu_exporter: http://dcgm:9400\ngpu_exporter_hostname: node-7");
    let exporter = plan.exporter.expect("named");
    assert_eq!(exporter.fetcher.target.to_string(), "http://dcgm:9400");
    assert_eq!(exporter.path, "/metrics");
    assert_eq!(exporter.hostname.as_deref(), Some("node-7"));
}

#[test]
fn node_is_the_setting_or_the_variable() {
    let exporter = "upstream: http://a\ngpu_exporter: http://dcgm:9400";
    for (variables, more, expected) in [
        (&[][..], "", None),
        (&[("NODE_NAME", "n"), ("K8S_NODE_NAME", "k")], "", Some("k")),
        (&[("NODE_NAME", "n")], "", Some("n")),
        (&[("NODE_NAME", "")], "", None),
        (&[("NODE_NAME", "n")], "\ngpu_exporter_hostname: other", Some("other")),
        (&[("NODE_NAME", "n")], "\ngpu_exporter_hostname: ''", None),
    ] {
        let made = make_on(Alone(variables), &format!("{exporter}{more}"));
        let plan = made.unwrap_or_else(|errors| panic!("{errors}")).gpu.expect("GPUs are read");
        let exporter = plan.exporter.expect("named");
        assert_eq!(exporter.hostname.as_deref(), expected, "{variables:?} {more:?}");
        assert_eq!(exporter.prefix, "");
    }
    let prefixed = plan(&format!("{exporter}\ngpu_exporter_prefix: amd_"));
    assert_eq!(prefixed.exporter.expect("named").prefix, "amd_");
}

#[test]
fn stale_time_is_at_least_two_samples() {
    for (sample, stale, expected) in [
        ("1000", "", Some(5)),
        ("60000", "", Some(5)),
        ("100", "", Some(50)),
        ("1000", "2000", Some(2)),
        ("1000", "1999", None),
        ("60000", "5000", None),
    ] {
        let stale = if stale.is_empty() { String::new() } else { format!("\ngpu_stale_ms: {stale}") };
        let made = make(&format!("upstream: http://a\ngpu_sample_ms: {sample}{stale}"));
        match (made, expected) {
            (Ok(plan), Some(periods)) => {
                assert_eq!(plan.gpu.expect("GPUs are read").stale_periods, periods, "{sample} {stale}")
            }
            (Err(errors), None) => {
                let shown = errors.to_string();
                assert!(shown.contains("t.yaml:3: GPUs are read every"), "{shown}");
            }
            (made, _) => panic!("{sample} {stale}: {}", made.is_ok()),
        }
    }
}

#[test]
fn off_plans_no_gpus() {
    assert!(make("upstream: http://a\ngpu: off").expect("a plan").gpu.is_none());
}

#[test]
fn several_upstreams_without_gpus_have_none() {
    let plan = plan("upstreams:\n- url: http://a\n- url: http://b\n  listen: 127.0.0.1:1\n");
    assert!(plan.upstreams.iter().all(|upstream| upstream.gpus == Some(Gpus::These(Vec::new()))));
}

#[test]
fn errors_are_reported_together_with_their_lines() {
    let shown = make(
        "upstreams:\n- url: http://a\n  gpus: 0\n- url: http://b\n  listen: 127.0.0.1:1\n\
         gpu: exporter\ngpu_hour_usd: cheap\nkwh_usd: -1\npue: 1.0000001\n",
    );
    let shown = shown.expect_err("every value is invalid").to_string();
    for part in [
        "the upstream `b:80` has no `gpus`",
        "t.yaml:6: `gpu: exporter` needs the exporter's address",
        "t.yaml:7: `cheap` is not a number of dollars",
        "t.yaml:8: `-1` is not a number of dollars",
        "t.yaml:9: `1.0000001` is not a number",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
}
