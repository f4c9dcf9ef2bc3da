//! GPUs as written: prices to the pico-dollar, devices by upstream, and every mistake.

use std::collections::BTreeMap;
use std::time::Duration;

use gpu::{GpuName, Gpus, SourceChoice};

use crate::file;
use crate::machine::Alone;
use crate::mistake::Mistakes;
use crate::plan::Plan;
use crate::settings::Written;

fn make(yaml: &str) -> Result<Plan, Mistakes> {
    make_on(Alone(&[]), yaml)
}

fn make_on(machine: Alone, yaml: &str) -> Result<Plan, Mistakes> {
    let file = file::parse("t.yaml", yaml).expect("it is YAML");
    Plan::make(&Written::merge(&BTreeMap::new(), &|_| None, Some(file)), &machine)
}

fn plan(yaml: &str) -> gpu::Plan {
    make(yaml).unwrap_or_else(|mistakes| panic!("{mistakes}")).gpu.expect("GPUs are watched")
}

#[test]
fn nothing_said_is_whatever_is_there() {
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
fn a_data_centre_draws_what_its_devices_do_at_least() {
    let told = make("upstream: http://a\npue: 0.5").expect_err("it is less than 1").to_string();
    assert!(told.starts_with("t.yaml:2: `0.5` is less than 1"), "{told}");
}

#[test]
fn each_upstream_has_its_devices() {
    let plan = plan(
        "upstreams:\n- url: http://a\n  gpus: [0, GPU-x]\n- url: http://b\n  listen: 127.0.0.1:1\n  gpus: all\n\
         - url: http://c\n  listen: 127.0.0.1:2\n  gpus: []\n",
    );
    let gpus: Vec<_> = plan.upstreams.into_iter().map(|upstream| upstream.gpus.expect("said")).collect();
    let these = Gpus::These(vec![GpuName::Index(0), GpuName::Uuid("GPU-x".into())]);
    assert_eq!(gpus, [these, Gpus::All, Gpus::These(Vec::new())]);
}

#[test]
fn an_exporter_has_a_page_and_a_node() {
    let plan = plan("upstream: http://a\ngpu_exporter: http://dcgm:9400\ngpu_exporter_hostname: node-7");
    let exporter = plan.exporter.expect("named");
    assert_eq!((&*exporter.host, exporter.port, exporter.path.as_str()), ("dcgm", 9400, "/metrics"));
    assert_eq!(exporter.hostname.as_deref(), Some("node-7"));
}

#[test]
fn the_node_is_ours_unless_another_is_meant() {
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
        let plan = made.unwrap_or_else(|mistakes| panic!("{mistakes}")).gpu.expect("GPUs are watched");
        let exporter = plan.exporter.expect("named");
        assert_eq!(exporter.hostname.as_deref(), expected, "{variables:?} {more:?}");
        assert_eq!(exporter.prefix, "");
    }
    let prefixed = plan(&format!("{exporter}\ngpu_exporter_prefix: amd_"));
    assert_eq!(prefixed.exporter.expect("named").prefix, "amd_");
}

#[test]
fn a_reading_is_fresh_for_two_samples_at_least() {
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
                assert_eq!(plan.gpu.expect("GPUs are watched").stale_periods, periods, "{sample} {stale}")
            }
            (Err(mistakes), None) => {
                let told = mistakes.to_string();
                assert!(told.contains("t.yaml:3: GPUs are read every"), "{told}");
            }
            (made, _) => panic!("{sample} {stale}: {}", made.is_ok()),
        }
    }
}

#[test]
fn off_is_off() {
    assert!(make("upstream: http://a\ngpu: off").expect("a plan").gpu.is_none());
}

#[test]
fn several_upstreams_of_which_none_speaks_of_gpus_have_none() {
    let plan = plan("upstreams:\n- url: http://a\n- url: http://b\n  listen: 127.0.0.1:1\n");
    assert!(plan.upstreams.iter().all(|upstream| upstream.gpus == Some(Gpus::These(Vec::new()))));
}

#[test]
fn mistakes_are_told_together_with_their_lines() {
    let told = make(
        "upstreams:\n- url: http://a\n  gpus: 0\n- url: http://b\n  listen: 127.0.0.1:1\n\
         gpu: exporter\ngpu_hour_usd: cheap\nkwh_usd: -1\npue: 1.0000001\n",
    );
    let told = told.expect_err("all of it is wrong").to_string();
    for part in [
        "it is not said which GPUs `b:80` uses",
        "t.yaml:6: the GPUs are to be read from an exporter, and none is named",
        "t.yaml:7: `cheap` is not a number of dollars",
        "t.yaml:8: `-1` is not a number of dollars",
        "t.yaml:9: `1.0000001` is not a number",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}
