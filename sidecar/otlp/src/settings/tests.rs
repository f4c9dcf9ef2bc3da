//! Resolution of variables.

use std::time::Duration;

use super::{Overrides, Sampler, Semconv, Settings, resolve};
use crate::plan::{Histograms, Protocol};

const ON: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

fn with(variables: &[(&str, &str)], overrides: &Overrides) -> Settings {
    let lookup = |name: &str| {
        variables.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    resolve(&lookup, overrides)
}

/// Resolves variables, with an endpoint unless they set one.
fn settings(variables: &[(&str, &str)]) -> Settings {
    let mut all = vec![ON];
    all.extend_from_slice(variables);
    let settings = with(&all, &Overrides::default());
    assert_eq!(settings.errors, [], "{all:?}");
    settings
}

fn plan(variables: &[(&str, &str)]) -> crate::Plan {
    settings(variables).plan.expect("an endpoint is set")
}

#[test]
fn nothing_is_exported_without_endpoint() {
    let off = |variables: &[(&str, &str)]| with(variables, &Overrides::default());
    assert!(off(&[]).plan.is_none());
    assert!(off(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_BSP_MAX_QUEUE_SIZE", "10")]).plan.is_none());
    assert!(off(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]).plan.is_none(), "an empty variable counts as unset");
    let named = off(&[("OTEL_TRACES_EXPORTER", "otlp")]);
    assert!(named.plan.is_none() && named.warnings.len() == 1, "{:?}", named.warnings);
    for variable in ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL"] {
        assert!(off(&[(variable, "grpc")]).plan.is_some(), "{variable}");
    }
    let overrides = Overrides { endpoint: Some("http://c".to_owned()), ..Overrides::default() };
    assert!(with(&[], &overrides).plan.is_some());
    assert!(settings(&[("OTEL_SDK_DISABLED", "TRUE")]).plan.is_none());
    assert!(settings(&[("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")]).plan.is_none());
}

#[test]
fn log_records_are_off_by_default() {
    assert!(plan(&[]).logs.is_none());
    assert!(plan(&[("OTEL_LOGS_EXPORTER", "otlp")]).logs.is_some());
    let on = Overrides { logs: Some(true), metrics: Some(false), ..Overrides::default() };
    let plan = with(&[ON], &on).plan.unwrap();
    assert!(plan.logs.is_some() && plan.metrics.is_none() && plan.spans.is_some());
    assert!(self::plan(&[("OTEL_METRICS_EXPORTER", "prometheus")]).metrics.is_none());
}

#[test]
fn path_is_appended_to_base_only() {
    // Endpoint, endpoint of traces, protocol, target of spans.
    let table = [
        ("http://c:4318", "", "http/protobuf", "http://c:4318/v1/traces"),
        ("http://c:4318/", "", "http/protobuf", "http://c:4318/v1/traces"),
        ("https://c/otlp/?key=1", "", "http/protobuf", "https://c/otlp/v1/traces?key=1"),
        ("http://c:4318", "http://t:1/x/", "http/protobuf", "http://t:1/x/"),
        ("http://c:4318", "http://t:1", "http/protobuf", "http://t:1/"),
        ("http://[::1]:4318", "", "http/protobuf", "http://[::1]:4318/v1/traces"),
        ("http://c:4317/path", "", "grpc", "http://c:4317/"),
        ("c:4317", "", "grpc", "https://c:4317/"),
        ("", "", "grpc", "http://localhost:4317/"),
        ("", "", "http/protobuf", "http://localhost:4318/v1/traces"),
    ];
    for (base, own, protocol, goes) in table {
        let plan = plan(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", base),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
        ]);
        assert_eq!(plan.spans.unwrap().target.uri.to_string(), goes, "{base} {own} {protocol}");
    }
    let insecure = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_INSECURE", "true"),
    ];
    assert_eq!(plan(&insecure).spans.unwrap().target.uri.to_string(), "http://c:4317/");
    let overrides = Overrides {
        endpoint: Some("http://explicit".to_owned()),
        protocol: Some(Protocol::Http),
        ..Overrides::default()
    };
    let variables =
        [ON, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let target = with(&variables, &overrides).plan.unwrap().spans.unwrap().target;
    assert_eq!((target.protocol, &*target.uri.to_string()), (Protocol::Http, "http://explicit/v1/traces"));
}

#[test]
fn variables_of_signal_override_general_ones() {
    let plan = plan(&[
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1, b = two%20words"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "c=3"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
        ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "3000"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "none"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
    ]);
    let (spans, metrics) = (plan.spans.unwrap().target, plan.metrics.unwrap().target);
    let pairs = |target: &crate::Target| {
        let pairs = target.headers.iter();
        pairs.map(|(name, value)| format!("{name}={}", value.to_str().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(
        (pairs(&spans), pairs(&metrics)),
        (vec!["a=1".into(), "b=two words".into()], vec!["c=3".into()])
    );
    assert_eq!((spans.timeout.as_secs(), metrics.timeout.as_secs()), (2, 3));
    assert_eq!((spans.gzip, metrics.gzip), (true, false));
    assert_eq!((spans.protocol, metrics.protocol), (Protocol::Grpc, Protocol::Http));
    assert_eq!(spans.certificate.unwrap().to_str(), Some("/ca.pem"));
}

#[test]
fn times_and_sizes_have_defaults_and_variables() {
    let all = [("OTEL_LOGS_EXPORTER", "otlp")];
    let default = plan(&all);
    let (spans, logs, metrics) = (default.spans.unwrap(), default.logs.unwrap(), default.metrics.unwrap());
    assert_eq!(
        (spans.capacity, spans.batch, spans.delay.as_millis(), spans.within.as_secs()),
        (2048, 512, 5000, 30)
    );
    assert_eq!(
        (logs.capacity, logs.batch, logs.delay.as_millis(), logs.within.as_secs()),
        (2048, 512, 1000, 30)
    );
    assert_eq!((metrics.every.as_secs(), metrics.within.as_secs()), (60, 30));
    assert_eq!(metrics.histograms, Histograms::Explicit);
    assert_eq!((spans.target.timeout.as_secs(), default.text_limit), (10, 1024));
    let plan = plan(&[
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
        ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "64"),
        ("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Cumulative"),
    ]);
    let (spans, metrics) = (plan.spans.unwrap(), plan.metrics.unwrap());
    assert_eq!((spans.capacity, spans.batch, spans.delay.as_millis()), (100, 100, 10));
    assert_eq!((metrics.every, plan.text_limit), (Duration::from_millis(1500), 64));
    assert_eq!(metrics.histograms, Histograms::Exponential);
}

#[test]
fn semconv_propagators_and_sampler_are_resolved() {
    let off = with(&[], &Overrides::default());
    assert_eq!((off.semconv, off.trace_context), (Semconv::Latest, true));
    assert_eq!(off.sampler, Sampler { follow_parent: true, ratio: 1.0 });
    for (word, semconv) in [
        ("gen_ai_latest_experimental", Semconv::Latest),
        ("http/dup,gen_ai_latest_experimental/dup", Semconv::Both),
        ("gen_ai/dup", Semconv::Both),
        ("gen_ai_legacy", Semconv::Legacy),
        ("database", Semconv::Latest),
    ] {
        assert_eq!(settings(&[("OTEL_SEMCONV_STABILITY_OPT_IN", word)]).semconv, semconv, "{word}");
    }
    let propagates =
        [("tracecontext", true), ("baggage,tracecontext", true), ("baggage", false), ("none", false)];
    for (words, trace_context) in propagates {
        assert_eq!(settings(&[("OTEL_PROPAGATORS", words)]).trace_context, trace_context, "{words}");
    }
    for (word, argument, follow_parent, ratio) in [
        ("always_off", "0.5", false, 0.0),
        ("traceidratio", "0.25", false, 0.25),
        ("parentbased_traceidratio", "", true, 1.0),
        ("parentbased_always_off", "", true, 0.0),
    ] {
        let variables = [("OTEL_TRACES_SAMPLER", word), ("OTEL_TRACES_SAMPLER_ARG", argument)];
        assert_eq!(settings(&variables).sampler, Sampler { follow_parent, ratio }, "{word}");
    }
}

#[test]
fn all_errors_are_reported_without_values() {
    let wrong = [
        ("OTEL_SDK_DISABLED", "sekret"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://sekret"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://user:sekret@c"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "sekret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,sekret"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "content-type=sekret,x y=sekret"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "a=%sekret"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "sekret"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "sekret"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/sekret"),
        ("OTEL_EXPORTER_OTLP_INSECURE", "sekret"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
        ("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "sekret"),
        ("OTEL_TRACES_EXPORTER", "sekret"),
        ("OTEL_LOGS_EXPORTER", "otlp"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1"),
        ("OTEL_BLRP_MAX_QUEUE_SIZE", "10"),
        ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "11"),
        ("OTEL_RESOURCE_ATTRIBUTES", "sekret"),
        ("OTEL_PROPAGATORS", "tracecontext,sekret"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_sekret"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "sekret"),
    ];
    let overrides = Overrides { spans: Some(true), ..Overrides::default() };
    let errors = with(&wrong, &overrides).errors;
    let valid = ["OTEL_LOGS_EXPORTER", "OTEL_BLRP_MAX_QUEUE_SIZE", "OTEL_TRACES_SAMPLER"];
    for (variable, _) in wrong {
        let found = errors.iter().filter(|error| error.variable == variable).count();
        let expected = match variable {
            _ if valid.contains(&variable) => 0,
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS" => 2,
            _ => 1,
        };
        assert_eq!(found, expected, "{variable}: {errors:#?}");
    }
    for error in &errors {
        let text = error.to_string();
        assert!(!text.contains("sekret"), "{text}");
        assert!(!error.remedy.is_empty(), "{text}");
    }
}

#[test]
fn port_of_other_protocol_is_warned_of() {
    let warned = |endpoint, protocol| {
        let variables =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)];
        settings(&variables).warnings.len()
    };
    assert_eq!((warned("http://c:4317", "http/protobuf"), warned("http://c:4318", "grpc")), (1, 1));
    assert_eq!((warned("http://c:4318", "http/protobuf"), warned("http://c:4317", "grpc")), (0, 0));
}

#[test]
fn configured_attribute_overrides_detected_one() {
    let of = |variables: &[(&str, &str)], name: &str| {
        let resource = plan(variables).resource;
        let mut found = resource.into_iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value);
        assert!(found.next().is_none(), "{name} occurs twice");
        value
    };
    let attributes = (
        "OTEL_RESOURCE_ATTRIBUTES",
        "service.name=b,deployment.environment.name=a%2Cb%C3%A9,k8s.pod.name=said",
    );
    const POD: (&str, &str) = ("KUBERNETES_SERVICE_HOST", "10.96.0.1");
    for (variables, name, value) in [
        (&[][..], "service.name", "tokenmeter"),
        (&[attributes], "service.name", "b"),
        (&[attributes, ("OTEL_SERVICE_NAME", "a")], "service.name", "a"),
        (&[attributes], "deployment.environment.name", "a,bé"),
        (&[POD, attributes, ("POD_NAME", "found")], "k8s.pod.name", "said"),
        (&[POD, ("POD_NAME", "found")], "k8s.pod.name", "found"),
        (&[POD, ("POD_NAMESPACE", "n"), ("K8S_NAMESPACE", "m")], "k8s.namespace.name", "m"),
        (&[POD, ("POD_UID", "u"), ("CONTAINER_NAME", "c")], "service.instance.id", "u.c"),
        (&[("HOSTNAME", "h")], "host.name", "h"),
    ] {
        assert_eq!(of(variables, name).as_deref(), Some(value), "{variables:?}");
    }
    let (one, other) = (of(&[], "service.instance.id").unwrap(), of(&[], "service.instance.id").unwrap());
    assert_eq!((one.len(), &one[14..15]), (36, "4"), "{one}");
    assert_ne!(one, other);
    for (variable, name) in [("CONTAINER_NAME", "k8s.container.name"), ("POD_NAME", "k8s.pod.name")] {
        assert_eq!(
            of(&[(variable, "x")], name),
            None,
            "outside Kubernetes {variable} belongs to another program"
        );
    }
    assert_eq!(of(&[], "process.pid"), Some(std::process::id().to_string()));
}

#[test]
fn invalid_target_disables_only_its_signal() {
    let variables = [
        ON,
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "nowhere"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_PROPAGATORS", "tracecontext,b3"),
        ("OTEL_TRACES_SAMPLER", "parentbased_jaeger_remote"),
    ];
    let settings = with(&variables, &Overrides::default());
    assert_eq!(settings.errors.len(), 4, "{:?}", settings.errors);
    let plan = settings.plan.expect("metrics have a target");
    assert!(plan.metrics.is_some_and(|metrics| !metrics.target.gzip) && plan.spans.is_none());
    assert!(settings.trace_context);
    assert_eq!(settings.sampler, Sampler::default());
}

#[test]
fn signal_without_endpoint_is_off_beside_one_with() {
    let only = |variables: &[(&str, &str)]| {
        let plan = with(variables, &Overrides::default()).plan.expect("a signal is exported");
        (plan.metrics.is_some(), plan.spans.is_some())
    };
    assert_eq!(only(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:4318/x")]), (false, true));
    assert_eq!(only(&[("OTEL_EXPORTER_OTLP_HEADERS", "a=b")]), (true, true), "to localhost");
    assert_eq!(only(&[ON, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:4318/x")]), (true, true));
}

#[test]
fn base_with_signal_path_is_warned_of() {
    let settings = settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/v1/metrics/")]);
    assert_eq!(settings.warnings.len(), 1, "{:?}", settings.warnings);
}

#[test]
fn https_collector_is_behind_the_proxy_of_the_environment() {
    let proxy = |endpoint: &str, no_proxy: &str| {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("HTTPS_PROXY", "http://user:hunter2@squid:3128"),
            ("NO_PROXY", no_proxy),
        ];
        plan(&variables).spans.unwrap().target.proxy.map(|proxy| proxy.to_string())
    };
    assert_eq!(proxy("https://collector:4318", ""), Some("http://squid:3128".to_owned()));
    assert_eq!(proxy("https://collector:4318", "collector"), None);
    assert_eq!(proxy("http://collector:4318", ""), None);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318"),
        ("HTTPS_PROXY", "socks5://user:hunter2@squid"),
    ];
    let errors = with(&variables, &Overrides::default()).errors;
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("HTTPS_PROXY only proxies with http:// are supported"), "{errors:?}");
}
