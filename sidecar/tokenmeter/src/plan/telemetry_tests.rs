//! The settings of the export, the standard variables, and their precedence.

use std::collections::BTreeMap;

use metrics::Semconv;
use otlp::Protocol;
use relay::{Draw, Sampler};

use crate::plan::machine::Alone;
use crate::plan::{Plan, Telemetry};
use crate::settings::{RawSettings, SETTINGS};

fn make(
    flags: &[(&str, &str)],
    variables: &'static [(&'static str, &'static str)],
) -> Result<Plan, origin::Diagnostics> {
    let known = |key: &str| SETTINGS.iter().find(|row| row.key == key).expect("a setting").key;
    let mut written: BTreeMap<_, _> =
        flags.iter().map(|(key, value)| (known(key), (*value).to_owned())).collect();
    written.insert("upstream", "http://127.0.0.1:8000".to_owned());
    Plan::make(&RawSettings::merge(&written, &|_| None, None), &Alone(variables))
}

fn telemetry(flags: &[(&str, &str)], variables: &'static [(&'static str, &'static str)]) -> Telemetry {
    make(flags, variables).unwrap_or_else(|errors| panic!("{errors}")).telemetry
}

#[test]
fn nothing_is_exported_without_an_endpoint() {
    let nothing = telemetry(&[], &[]);
    assert!(nothing.otlp.is_none() && nothing.trace.is_none());
    assert_eq!(nothing.semconv, Semconv::Latest);
}

#[test]
fn standard_variable_sets_the_endpoint() {
    let plan = telemetry(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/base")]);
    let otlp = plan.otlp.expect("it is exported");
    let (metrics, spans) = (otlp.metrics.expect("metrics"), otlp.spans.expect("spans"));
    assert_eq!(metrics.target.uri.to_string(), "http://collector:4318/base/v1/metrics");
    assert_eq!(spans.target.uri.to_string(), "http://collector:4318/base/v1/traces");
    assert!(otlp.logs.is_none(), "log records are exported only on request");
    assert_eq!(plan.trace.expect("traced").sampler, Sampler { heeds_caller: true, draw: Draw::Always });
    assert_eq!(otlp.upstreams[0].port, Some(8000));
}

#[test]
fn settings_precede_standard_variables_with_a_warning() {
    let variables = &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4318")];
    let flags =
        [("otlp_endpoint", "http://c:4317"), ("otlp_protocol", "grpc"), ("otlp_signals", "logs, metrics")];
    let plan = make(&flags, variables).expect("a plan");
    let otlp = plan.telemetry.otlp.expect("it is exported");
    let logs = otlp.logs.expect("logs");
    assert_eq!((logs.target.uri.host(), logs.target.protocol), (Some("c"), Protocol::Grpc));
    assert!(otlp.metrics.is_some() && otlp.spans.is_none());
    assert!(plan.telemetry.trace.is_none(), "no spans, so no trace headers");
    assert!(plan.warnings.iter().any(|warning| warning.message.contains("OTEL_EXPORTER_OTLP_ENDPOINT")));
}

#[test]
fn traces_need_no_trace_headers() {
    let to = ("otlp_endpoint", "http://c:4318");
    let propagates =
        |flags: &[(&str, &str)], variables| telemetry(flags, variables).trace.expect("traced").propagate;
    assert!(propagates(&[to], &[]));
    assert!(!propagates(&[to, ("trace_headers", "off")], &[]));
    assert!(!propagates(&[to], &[("OTEL_PROPAGATORS", "baggage")]));
}

#[test]
fn setting_semconv_precedes_the_variable() {
    let opt_in = &[("OTEL_SEMCONV_STABILITY_OPT_IN", "http,gen_ai_latest_experimental/dup")];
    assert_eq!(telemetry(&[], opt_in).semconv, Semconv::Both);
    assert_eq!(telemetry(&[("semconv", "legacy")], opt_in).semconv, Semconv::Legacy);
    assert_eq!(telemetry(&[("semconv", "client")], opt_in).semconv, Semconv::Client);
}

#[test]
fn invalid_standard_variable_is_only_a_warning() {
    let variables = &[
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer s3cret\n"),
        ("OTEL_PROPAGATORS", "tracecontext,b3"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
    ];
    let plan = make(&[], variables).expect("it starts");
    let warned: String = plan.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    for place in ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_PROPAGATORS", "OTEL_TRACES_SAMPLER"] {
        assert!(warned.contains(place), "{place} is missing in: {warned}");
    }
    assert!(plan.telemetry.otlp.is_none(), "the protocol is unknown");
    let ours = [("otlp_signals", "metrics,profiles"), ("otlp_endpoint", "ftp://c")];
    let shown = make(&ours, variables).expect_err("the settings are invalid").to_string();
    for place in ["--otlp-signals", "the OTLP endpoint"] {
        assert!(shown.contains(place), "{place} is missing in: {shown}");
    }
    assert!(!shown.contains("OTEL_TRACES_SAMPLER"), "{shown}");
    assert!(!shown.contains("s3cret") && !warned.contains("s3cret"), "{shown}{warned}");
}

#[test]
fn signals_of_standard_variables_are_printed() {
    let variables = &[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"),
        ("OTEL_LOGS_EXPORTER", "otlp"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ];
    let shown = make(&[], variables).expect("a plan").effective.show(true);
    let line = shown.lines().find(|line| line.starts_with("otlp_signals: ")).expect("it is shown");
    assert!(line.starts_with("otlp_signals: \"metrics,logs\""), "{line}");
    assert!(line.ends_with("# OTEL_TRACES_EXPORTER, OTEL_LOGS_EXPORTER"), "{line}");
    // The settings precede the variables.
    let ours = make(&[("otlp_endpoint", "http://d:4318"), ("otlp_signals", "traces")], variables);
    let shown = ours.expect("a plan").effective.show(true);
    for line in ["otlp_endpoint: http://d:4318", "otlp_signals: traces"] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "no {line} in {shown}");
    }
}

#[test]
fn notes_have_collectors_and_no_secret() {
    let variables = &[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4317/?token=s3cret"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=s3cret"),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_legacy"),
    ];
    let shown = make(&[], variables).expect("a plan").effective.show(false);
    for line in [
        "# metrics go to https://collector:4317/ by grpc",
        "# traces go to https://collector:4317/ by grpc",
        "# metrics by the genai convention: legacy",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no {line:?} in {shown}");
    }
    assert!(!shown.contains("s3cret"), "{shown}");
    let shown = make(&[], variables).expect("a plan").effective.show(true);
    for (line, origin) in [
        ("otlp_endpoint: https://collector:4317/", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("otlp_protocol: grpc", "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ("semconv: legacy", "OTEL_SEMCONV_STABILITY_OPT_IN"),
    ] {
        let is_it = |shown: &str| shown.starts_with(line) && shown.ends_with(&format!("  # {origin}"));
        assert!(shown.lines().any(is_it), "no {line} of {origin} in {shown}");
    }
    assert!(!make(&[], &[]).expect("a plan").effective.show(false).contains('#'));
}
