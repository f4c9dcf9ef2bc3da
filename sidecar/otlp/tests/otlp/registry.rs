//! Every exported name in the semantic convention's namespaces is in its registry, whose content is in
//! `registry.txt`: a name outside the registry could collide with a later one.

use std::collections::{BTreeMap, BTreeSet};

use meter::{Ending, TokenType};
use metrics::{Instrument, Kind, Metric, attribute};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use otlp::Protocol;
use scan::{Dialect, Name, OutputType, ReasoningLevel, Sampling};

use crate::collector::Collector;
use crate::exchanges::{chat, finished};
use crate::plans::{self, LONG};

#[derive(Debug, Default)]
struct Registry {
    /// Type and values by name; the value `+` allows others.
    attributes: BTreeMap<&'static str, (&'static str, BTreeSet<&'static str>)>,
    metrics: BTreeMap<&'static str, Convention>,
    events: BTreeSet<&'static str>,
}

#[derive(Debug, Default)]
struct Convention {
    instrument: &'static str,
    unit: &'static str,
    edges: Vec<f64>,
    /// Level by name.
    attributes: BTreeMap<&'static str, &'static str>,
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    let mut last = "";
    for line in include_str!("registry.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["attribute", name, kind, ref values @ ..] => {
                registry.attributes.insert(name, (kind, values.iter().copied().collect()));
            }
            ["event", name] => _ = registry.events.insert(name),
            ["metric", name, instrument, unit] => {
                registry.metrics.insert(name, Convention { instrument, unit, ..Convention::default() });
                last = name;
            }
            ["edges", ref edges @ ..] => {
                let metric = registry.metrics.get_mut(last).expect("edges of a metric");
                metric.edges = edges.iter().map(|edge| edge.parse().unwrap()).collect();
            }
            [name, level @ ("required" | "conditional" | "recommended")] => {
                assert!(registry.attributes.contains_key(name), "{name}");
                registry.metrics.get_mut(last).expect("of a metric").attributes.insert(name, level);
            }
            _ => panic!("{line:?}"),
        }
    }
    assert_eq!((registry.metrics.len(), registry.attributes.len()), (16, 49));
    registry
}

fn conventional(name: &str) -> bool {
    ["gen_ai.", "openai.", "server.", "error."].iter().any(|space| name.starts_with(space))
}

/// Recommended attributes of metrics that are omitted, with the reason.
const LEFT_OUT: &[(&str, &str)] =
    &[("gen_ai.response.model", "a server may return a new model name with every response: unbounded")];

#[test]
fn every_metric_matches_registry() {
    let registry = registry();
    let mut emitted = BTreeSet::new();
    for entry in Metric::ALL.iter().map(|metric| metric.entry()) {
        let name = entry.otlp_name();
        if !conventional(name) {
            continue;
        }
        let convention =
            registry.metrics.get(name).unwrap_or_else(|| panic!("{name} is not in the registry"));
        emitted.insert(name);
        let instrument = match entry.instrument() {
            Instrument::Counter => "counter",
            Instrument::Histogram => "histogram",
            Instrument::Gauge => "gauge",
            Instrument::UpDownCounter => "updowncounter",
        };
        assert_eq!((instrument, entry.otlp_unit()), (convention.instrument, convention.unit), "{name}");
        if let Kind::Histogram(edges) = entry.kind {
            assert!(convention.edges.iter().all(|edge| edges.contains(edge)), "{name}: {edges:?}");
        }
        let labels: BTreeSet<_> = entry.labels.iter().map(|label| attribute(label)).collect();
        for label in &labels {
            assert!(convention.attributes.contains_key(label), "{name} has no attribute {label}");
        }
        for (attribute, level) in &convention.attributes {
            let left_out = *level == "recommended" && LEFT_OUT.iter().any(|(name, _)| name == attribute);
            assert_eq!(labels.contains(attribute), !left_out, "{name}: {attribute} is {level}");
        }
    }
    let missing: Vec<_> = registry.metrics.keys().filter(|name| !emitted.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_conventional_label_is_in_registry() {
    let registry = registry();
    for entry in Metric::ALL.iter().map(|metric| metric.entry()) {
        for name in entry.labels.iter().map(|label| attribute(label)).filter(|name| conventional(name)) {
            assert!(registry.attributes.contains_key(name), "{}: {name}", entry.name);
        }
    }
}

#[test]
fn every_conventional_event_is_in_registry() {
    let registry = registry();
    let collector = Collector::new();
    let exporter = plans::start(plans::spans(Protocol::Http, collector.address));
    let mut record = chat();
    record.timing.first_tool_ns = Some(1_000_000_000);
    exporter.submit(finished(record));
    assert_eq!(exporter.shutdown(LONG).spans.sent, 2);
    let events: Vec<_> = collector.seen().spans().into_iter().flat_map(|span| span.events).collect();
    assert_eq!(events.len(), 3);
    for event in events.iter().filter(|event| conventional(&event.name)) {
        assert!(registry.events.contains(&*event.name), "{}", event.name);
    }
}

#[test]
fn every_attribute_matches_type_in_registry() {
    let registry = registry();
    let mut seen = BTreeSet::new();
    for record in exchanges() {
        for KeyValue { key, value, .. } in attributes(record) {
            if !conventional(&key) {
                continue;
            }
            let (kind, values) =
                registry.attributes.get(&*key).unwrap_or_else(|| panic!("{key} is not in the registry"));
            let (is, words) = type_and_texts(value.and_then(|value| value.value).expect("a value"));
            assert_eq!(is, *kind, "{key}");
            if !values.is_empty() && !values.contains("+") {
                assert!(words.iter().all(|word| values.contains(&**word)), "{key}: {words:?}");
            }
            seen.insert(key);
        }
    }
    assert!(seen.len() >= 37, "only {seen:?}");
}

/// Returns exchanges with all attributes: every dialect, every token type, successes and failures.
fn exchanges() -> Vec<meter::Record> {
    let mut all = Vec::new();
    for dialect in Dialect::ALL {
        for ending in Ending::ALL {
            let mut record = chat();
            record.identity.dialect = dialect;
            record.ending = ending;
            record.answers = 2;
            record.is_compacted = true;
            record.identity.provider = "openai".into();
            record.identity.requested_tier = Some("flex".into());
            record.identity.service_tier = Some("default".into());
            record.identity.is_tier_reported = true;
            let links = record.identity.links.as_mut().unwrap();
            (links.prompt, links.prompt_version) = (Name::cut(b"pmpt_1"), Name::cut(b"2"));
            record.sampling = Sampling {
                max_tokens: Some(256),
                temperature: Some(0.7),
                top_p: Some(0.9),
                top_k: Some(40.0),
                seed: Some(7),
                frequency_penalty: Some(0.1),
                presence_penalty: Some(0.1),
                reasoning_level: Some(ReasoningLevel::High),
                output_type: Some(OutputType::Json),
                dimensions: Some(256),
                encoding_formats: [true; 6],
            };
            for kind in TokenType::ALL {
                record.tokens.by_type[kind as usize] = 5;
            }
            all.push(record);
        }
    }
    all
}

/// Returns the attributes of an exchange's spans and of its log record.
fn attributes(record: meter::Record) -> Vec<KeyValue> {
    let exchange = finished(record);
    let collector = Collector::new();
    let exporter = plans::start(plans::spans(Protocol::Http, collector.address));
    exporter.submit(exchange.clone());
    assert_eq!(exporter.shutdown(LONG).spans.sent, 2);
    let exporter = plans::start(plans::logs(Protocol::Http, collector.address));
    exporter.submit(exchange);
    assert_eq!(exporter.shutdown(LONG).logs.sent, 1);
    let seen = collector.seen();
    let spans = seen.spans().into_iter().flat_map(|span| span.attributes);
    let logs = seen.log_records().into_iter().flat_map(|log| log.attributes);
    spans.chain(logs).collect()
}

/// Returns the convention's name of a value's type, and its texts.
fn type_and_texts(value: Value) -> (&'static str, Vec<String>) {
    match value {
        Value::StringValue(text) => ("string", vec![text]),
        Value::BoolValue(_) => ("boolean", Vec::new()),
        Value::IntValue(_) => ("int", Vec::new()),
        Value::DoubleValue(_) => ("double", Vec::new()),
        Value::ArrayValue(list) => {
            let texts = list.values.into_iter().map(|AnyValue { value }| match value {
                Some(Value::StringValue(text)) => text,
                other => panic!("{other:?} in a list"),
            });
            ("string[]", texts.collect())
        }
        other => panic!("{other:?}"),
    }
}
