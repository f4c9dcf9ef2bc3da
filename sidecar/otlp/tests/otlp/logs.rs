//! Log records of exchanges.

use std::collections::BTreeSet;

use meter::{Ending, Provenance, Record};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use otlp::{Charge, Detail, EventName, Finished, Plan, Protocol};
use scan::Dialect;

use crate::collector::Collector;
use crate::exchanges::{CLIENT, STARTED, TRACE, UPLOAD, chat, finished, said, untraced};
use crate::plans::{self, BOTH, LONG};

fn arrive(protocol: Protocol, record: Record) -> LogRecord {
    let collector = Collector::new();
    let exporter = plans::start(plans::logs(protocol, collector.address));
    exporter.submit(finished(record));
    assert_eq!(exporter.shutdown(LONG).logs.sent, 1);
    let mut records = collector.seen().log_records();
    assert_eq!(records.len(), 1);
    records.remove(0)
}

#[test]
fn exchange_is_one_event_linked_to_trace() {
    for protocol in BOTH {
        let log = arrive(protocol, chat());
        assert_eq!(log.event_name, "tokenmeter.exchange");
        let body = log.body.as_ref().and_then(|body| body.value.clone());
        let summary = "chat qwen3-8b complete: 120 input and 50 output tokens in 2.000 s";
        assert_eq!(body, Some(Value::StringValue(summary.to_owned())));
        assert_eq!((&*log.trace_id, &*log.span_id), (&TRACE[..], &CLIENT[..]));
        assert_eq!(log.flags, 1);
        assert_eq!(log.time_unix_nano, STARTED + UPLOAD + 2_000_000_000);
        for (key, value) in [
            ("gen_ai.usage.input_tokens", "120"),
            ("tokenmeter.exchange.id", "abababab-abab-abab-abab-abababababab"),
            ("tokenmeter.upload", "0.3"),
            ("tokenmeter.duration", "2"),
            ("tokenmeter.time_to_first_token", "0.2"),
            ("http.response.status_code", "200"),
        ] {
            assert_eq!(said(&log.attributes, key).as_deref(), Some(value), "{key}");
        }
    }
}

#[test]
fn summary_marks_estimates_and_unknown_counts() {
    let mut record = chat();
    record.tokens.input_provenance = Provenance::None;
    record.tokens.output_provenance = Provenance::Frames;
    record.ending = Ending::ClientAbort;
    let summary = "chat qwen3-8b client_abort: unknown input and about 50 output tokens in 2.000 s";
    let body = arrive(Protocol::Http, record).body.and_then(|body| body.value);
    assert_eq!(body, Some(Value::StringValue(summary.to_owned())));
}

#[test]
fn internals_are_sent_in_full_detail_only() {
    let standard = arrive(Protocol::Http, chat());
    let collector = Collector::new();
    let plan = Plan { detail: Detail::Full, ..plans::logs(Protocol::Http, collector.address) };
    let exporter = plans::start(plan);
    exporter.submit(finished(chat()));
    assert_eq!(exporter.shutdown(LONG).logs.sent, 1);
    let full = collector.seen().log_records().remove(0);
    let names = |log: &LogRecord| log.attributes.iter().map(|pair| pair.key.clone()).collect::<BTreeSet<_>>();
    let (standard, full) = (names(&standard), names(&full));
    assert!(standard.is_subset(&full));
    let internals: Vec<&str> = full.difference(&standard).map(String::as_str).collect();
    assert_eq!(
        internals,
        [
            "tokenmeter.choices",
            "tokenmeter.generation",
            "tokenmeter.generation_tokens",
            "tokenmeter.load.busy",
            "tokenmeter.load.entered",
            "tokenmeter.load.left",
            "tokenmeter.load.share",
            "tokenmeter.stalled",
            "tokenmeter.visible_characters",
            "tokenmeter.weight",
        ]
    );
}

#[test]
fn inference_has_event_name_of_convention() {
    for (dialect, name) in [
        (Dialect::OpenaiChat, "gen_ai.client.inference.operation.details"),
        (Dialect::Embeddings, "tokenmeter.exchange"),
    ] {
        let collector = Collector::new();
        let plan = plans::logs(Protocol::Http, collector.address);
        let exporter = plans::start(Plan { event: EventName::OperationDetails, ..plan });
        let mut record = chat();
        record.identity.dialect = dialect;
        exporter.submit(finished(record));
        assert_eq!(exporter.shutdown(LONG).logs.sent, 1);
        assert_eq!(collector.seen().log_records().remove(0).event_name, name);
    }
}

/// Returns the values of some keys in an exchange's log record and in its inference's span.
fn values(exchange: &Finished, keys: &[&str]) -> [Vec<Option<String>>; 2] {
    let logs = Collector::new();
    let exporter = plans::start(plans::logs(Protocol::Http, logs.address));
    exporter.submit(exchange.clone());
    assert_eq!(exporter.shutdown(LONG).logs.sent, 1);
    let spans = Collector::new();
    let exporter = plans::start(plans::spans(Protocol::Http, spans.address));
    exporter.submit(exchange.clone());
    assert_eq!(exporter.shutdown(LONG).spans.sent, 2);
    let (log, spans) = (logs.seen().log_records().remove(0), spans.seen().spans());
    let client = spans.iter().find(|span| *span.span_id == CLIENT).expect("the inference");
    [&log.attributes, &client.attributes].map(|list| keys.iter().map(|key| said(list, key)).collect())
}

#[test]
fn tenant_and_cost_are_exact() {
    let keys = [
        "tokenmeter.tenant",
        "tokenmeter.principal",
        "tokenmeter.consumer",
        "tokenmeter.service_tier",
        "tokenmeter.cost",
        "tokenmeter.cost.currency",
        "tokenmeter.price.version",
        "tokenmeter.unpriced",
    ];
    let text = |text: &str| Some(text.to_owned());
    let mut record = chat();
    record.identity.tenant = "team-a".into();
    record.identity.principal = Some("key-7".into());
    record.identity.consumer = Some("c0ffee".into());
    record.identity.service_tier = Some("priority".into());
    let charge =
        Charge::Priced { pico: 1_234_000_000_001, currency: "EUR".into(), version: "2026-11".into() };
    let priced = Finished { charge: Some(charge), ..finished(record) };
    let all = ["team-a", "key-7", "c0ffee", "priority", "1.234000000001", "EUR", "2026-11"].map(text);
    for said in values(&priced, &keys) {
        assert_eq!(said, [&all[..], &[None]].concat());
    }
    let unpriced = Finished { charge: Some(Charge::Unpriced("model")), ..finished(chat()) };
    let nothing = [text("default"), None, None, None, None, None, None];
    for said in values(&unpriced, &keys) {
        assert_eq!(said, [&nothing[..], &[text("model")]].concat());
    }
    for said in values(&finished(chat()), &keys) {
        assert_eq!(said, [&nothing[..], &[None]].concat(), "nobody charges");
    }
}

#[test]
fn exchange_without_trace_has_log_record() {
    let log = arrive(Protocol::Http, untraced());
    assert_eq!((log.trace_id, log.span_id, log.flags), (vec![], vec![], 0));
}

#[test]
fn severity_follows_ending() {
    for (ending, status, severity) in [
        (Ending::Complete, 200, "INFO"),
        (Ending::Length, 200, "INFO"),
        (Ending::ClientAbort, 200, "INFO"),
        (Ending::UpstreamCut, 200, "ERROR"),
        (Ending::ErrorInBand, 200, "ERROR"),
        (Ending::ErrorStatus, 404, "WARN"),
        (Ending::ErrorStatus, 500, "ERROR"),
        (Ending::NoOutput, 200, "WARN"),
        (Ending::Detached, 202, "WARN"),
        (Ending::ProxyError, 0, "ERROR"),
    ] {
        let mut record = chat();
        (record.ending, record.status) = (ending, status);
        let log = arrive(Protocol::Http, record);
        assert_eq!(log.severity_text, severity, "{ending:?} {status}");
        let number = match severity {
            "INFO" => 9,
            "WARN" => 13,
            _ => 17,
        };
        assert_eq!(log.severity_number, number);
    }
}
