//! The log records of two exchanges, built with the SDK.
//!
//! Difference: the observation time is that of the clock.

use meter::{Ending, Record, Span};
use opentelemetry::logs::{AnyValue, LogRecord as _, Logger, LoggerProvider, Severity};
use opentelemetry::{SpanId, TraceFlags, TraceId};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_sdk::logs::{SdkLogRecord, SdkLoggerProvider, SimpleLogProcessor};
use otlp::{Detail, Plan, Protocol};

use super::{Twin, assert_same, plan, resource, scope, sort, sort_resource, time};
use crate::collector::Collector;
use crate::exchanges::{CLIENT, STARTED, TRACE, UPLOAD, chat, finished, untraced};
use crate::plans::{self, BOTH, LONG};

fn ours(protocol: Protocol, record: Record) -> ExportLogsServiceRequest {
    let collector = Collector::new();
    let logs = Plan { detail: Detail::Full, ..plans::logs(protocol, collector.address) };
    let exporter = plans::start(plan(logs));
    exporter.submit(finished(record));
    assert_eq!(exporter.shutdown(LONG).logs.sent, 1);
    let request = collector.seen().logs.pop().unwrap();
    comparable(request)
}

fn theirs(protocol: Protocol, set: impl FnOnce(&mut SdkLogRecord)) -> ExportLogsServiceRequest {
    let collector = Collector::new();
    let processor = SimpleLogProcessor::new(Twin::logs(protocol, &collector));
    let provider =
        SdkLoggerProvider::builder().with_resource(resource()).with_log_processor(processor).build();
    let logger = provider.logger_with_scope(scope());
    let mut record = logger.create_log_record();
    set(&mut record);
    logger.emit(record);
    provider.shutdown().unwrap();
    let request = collector.seen().logs.pop().unwrap();
    comparable(request)
}

fn comparable(mut request: ExportLogsServiceRequest) -> ExportLogsServiceRequest {
    for resource in &mut request.resource_logs {
        sort_resource(&mut resource.resource);
        for record in resource.scope_logs.iter_mut().flat_map(|scope| &mut scope.log_records) {
            sort(&mut record.attributes);
            record.observed_time_unix_nano = u64::from(record.observed_time_unix_nano > STARTED / 2);
        }
    }
    request
}

/// Sets the values that both exchanges share.
fn set_common(record: &mut SdkLogRecord) {
    record.set_event_name("tokenmeter.exchange");
    record.set_timestamp(time(STARTED + UPLOAD + 2_000_000_000));
    let words = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "vllm"),
        ("gen_ai.request.model", "qwen3-8b"),
        ("gen_ai.request.previous_response.id", "resp_0"),
        ("gen_ai.conversation.id", "conv_1"),
        ("gen_ai.response.model", "qwen3-8b-fp8"),
        ("gen_ai.response.id", "chatcmpl-1"),
        ("server.address", "10.0.0.7"),
        ("tokenmeter.usage.input.provenance", "reported"),
        ("tokenmeter.usage.output.provenance", "reported"),
        ("tokenmeter.exchange.id", "abababab-abab-abab-abab-abababababab"),
        ("tokenmeter.tenant", "default"),
        ("tokenmeter.upstream", "gpu-1"),
        ("tokenmeter.dialect", "openai_chat"),
        ("tokenmeter.weight", "spread"),
    ];
    record.add_attributes(words);
    let wholes = [
        ("gen_ai.request.max_tokens", 256i64),
        ("gen_ai.usage.input_tokens", 120),
        ("gen_ai.usage.cache_read.input_tokens", 100),
        ("gen_ai.usage.output_tokens", 50),
        ("gen_ai.usage.reasoning.output_tokens", 10),
        ("server.port", 8000),
        ("http.response.status_code", 200),
        ("tokenmeter.choices", 1),
        ("tokenmeter.visible_characters", 160),
        ("tokenmeter.generation_tokens", 0),
        ("tokenmeter.load.entered", 1),
        ("tokenmeter.load.left", 1),
    ];
    record.add_attributes(wholes);
    let numbers = [
        ("gen_ai.request.temperature", 0.7),
        ("gen_ai.response.time_to_first_chunk", 0.195),
        ("tokenmeter.concurrency", 2.5),
        ("tokenmeter.upload", 0.3),
        ("tokenmeter.duration", 2.0),
        ("tokenmeter.time_to_first_byte", 0.19),
        ("tokenmeter.time_to_first_token", 0.2),
        ("tokenmeter.time_to_first_visible_token", 0.9),
        ("tokenmeter.generation", 0.0),
        ("tokenmeter.stalled", 0.0),
        ("tokenmeter.client_wait", 0.0),
        ("tokenmeter.load.busy", 0.0),
        ("tokenmeter.load.share", 0.0),
    ];
    record.add_attributes(numbers);
    record.add_attribute("gen_ai.request.stream", true);
    record.add_attribute("gen_ai.response.finish_reasons", ["stop"].into_iter().collect::<AnyValue>());
}

#[test]
fn log_record_equals_official_one() {
    for protocol in BOTH {
        let theirs = theirs(protocol, |record| {
            set_common(record);
            record.set_severity_number(Severity::Info);
            record.set_severity_text("INFO");
            record.set_body("chat qwen3-8b complete: 120 input and 50 output tokens in 2.000 s".into());
            let (trace, span) = (TraceId::from_bytes(TRACE), SpanId::from_bytes(CLIENT));
            record.set_trace_context(trace, span, Some(TraceFlags::SAMPLED));
            record.add_attribute("tokenmeter.ending", "complete");
        });
        assert_same(&ours(protocol, chat()), &theirs, &format!("{protocol:?}"));
    }
}

#[test]
fn log_record_without_trace_equals_official_one() {
    let mut record = untraced();
    record.ending = Ending::UpstreamCut;
    let pace = record.timing.pace.get_or_insert_default();
    pace.position[0] = Span { tokens: 3, ns: 5 };
    let positions = pace.position.len();
    let theirs = theirs(Protocol::Http, |record| {
        set_common(record);
        record.set_severity_number(Severity::Error);
        record.set_severity_text("ERROR");
        record.add_attribute("tokenmeter.ending", "upstream_cut");
        record.add_attribute("error.type", "stream_truncated");
        let tokens = std::iter::once(3i64).chain(std::iter::repeat(0)).take(positions);
        record.add_attribute("tokenmeter.position.tokens", tokens.collect::<AnyValue>());
        let seconds = std::iter::once(5e-9).chain(std::iter::repeat(0.0)).take(positions);
        record.add_attribute("tokenmeter.position.seconds", seconds.collect::<AnyValue>());
        record.set_body("chat qwen3-8b upstream_cut: 120 input and 50 output tokens in 2.000 s".into());
    });
    assert_same(&ours(Protocol::Http, record), &theirs, "without a trace");
}
