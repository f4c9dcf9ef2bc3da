//! The spans of some exchanges, built with the SDK.
//!
//! Differences: the SDK parses and formats a `tracestate`, which removes white space between members that tokenmeter
//! keeps; and it does not limit texts, so it receives truncated ones.

use std::str::FromStr;

use meter::{Ending, Provenance, Record};
use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{KeyValue, Value};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use otlp::{Energy, Finished, Protocol};
use scan::Finish;

use super::{Twin, assert_same, plan, scope, sort, sort_resource, text, texts, time};
use crate::collector::Collector;
use crate::exchanges::{CALLER, CLIENT, SERVER, STARTED, TRACE, UPLOAD, chat, finished};
use crate::plans::{self, BOTH, LONG};

/// An exchange and its spans, built with the SDK.
struct Case {
    record: Record,
    energy: Option<Energy>,
    server: SpanData,
    client: SpanData,
}

fn span(kind: SpanKind, id: [u8; 8], parent: [u8; 8], attributes: &[(&'static str, Value)]) -> SpanData {
    let state = TraceState::from_str("vendor=x").unwrap();
    let (trace, id) = (TraceId::from_bytes(TRACE), SpanId::from_bytes(id));
    // The inference starts when the request is complete.
    let begun = if kind == SpanKind::Server { STARTED } else { STARTED + UPLOAD };
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, state),
        parent_span_id: SpanId::from_bytes(parent),
        parent_span_is_remote: kind == SpanKind::Server,
        span_kind: kind,
        name: "".into(),
        start_time: time(begun),
        end_time: time(STARTED + UPLOAD + 2_000_000_000),
        attributes: attributes.iter().map(|(key, value)| KeyValue::new(*key, value.clone())).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: scope(),
    }
}

/// Returns the chat of the other tests.
fn success() -> Case {
    let mut server = span(
        SpanKind::Server,
        SERVER,
        CALLER,
        &[
            ("http.request.method", text("POST")),
            ("url.scheme", text("http")),
            ("url.path", text("/v1/chat/completions")),
            ("http.route", text("/v1/chat/completions")),
            ("http.response.status_code", 200.into()),
            ("tokenmeter.exchange.id", text("abababab-abab-abab-abab-abababababab")),
            ("tokenmeter.ending", text("complete")),
        ],
    );
    server.name = "POST /v1/chat/completions".into();
    let mut client = span(
        SpanKind::Client,
        CLIENT,
        SERVER,
        &[
            ("gen_ai.operation.name", text("chat")),
            ("gen_ai.provider.name", text("vllm")),
            ("gen_ai.request.model", text("qwen3-8b")),
            ("gen_ai.request.stream", true.into()),
            ("gen_ai.request.temperature", 0.7.into()),
            ("gen_ai.request.max_tokens", 256.into()),
            ("gen_ai.request.previous_response.id", text("resp_0")),
            ("gen_ai.conversation.id", text("conv_1")),
            ("gen_ai.response.model", text("qwen3-8b-fp8")),
            ("gen_ai.response.id", text("chatcmpl-1")),
            ("gen_ai.response.finish_reasons", texts(&["stop"])),
            ("gen_ai.response.time_to_first_chunk", 0.195.into()),
            ("gen_ai.usage.input_tokens", 120.into()),
            ("gen_ai.usage.cache_read.input_tokens", 100.into()),
            ("gen_ai.usage.output_tokens", 50.into()),
            ("gen_ai.usage.reasoning.output_tokens", 10.into()),
            ("server.address", text("10.0.0.7")),
            ("server.port", 8000.into()),
            ("tokenmeter.usage.input.provenance", text("reported")),
            ("tokenmeter.usage.output.provenance", text("reported")),
            ("tokenmeter.exchange.id", text("abababab-abab-abab-abab-abababababab")),
            ("tokenmeter.tenant", text("default")),
            ("tokenmeter.upstream", text("gpu-1")),
            ("tokenmeter.dialect", text("openai_chat")),
            ("tokenmeter.ending", text("complete")),
            ("tokenmeter.concurrency", 2.5.into()),
            ("tokenmeter.time_to_first_token", 0.2.into()),
        ],
    );
    client.name = "chat qwen3-8b".into();
    let event = |name: &'static str, after| Event::new(name, time(STARTED + UPLOAD + after), Vec::new(), 0);
    client.events.events = vec![
        event("tokenmeter.first_token", 200_000_000),
        event("tokenmeter.first_visible_token", 900_000_000),
    ];
    Case { record: chat(), energy: None, server, client }
}

fn set(span: &mut SpanData, key: &'static str, value: Value) {
    unset(span, key);
    span.attributes.push(KeyValue::new(key, value));
}

fn unset(span: &mut SpanData, key: &str) {
    span.attributes.retain(|known| known.key.as_str() != key);
}

/// Sets flags and state of the trace.
fn in_trace(span: &mut SpanData, flags: TraceFlags, state: &str) {
    let (trace, id) = (span.span_context.trace_id(), span.span_context.span_id());
    let state = TraceState::from_str(state).unwrap();
    span.span_context = SpanContext::new(trace, id, flags, false, state);
}

/// Returns an exchange whose trace starts here and is not sampled.
fn own_trace() -> Case {
    let mut case = success();
    let trace = case.record.identity.trace.as_mut().unwrap();
    (trace.parent, trace.sampled, trace.state) = (None, false, "".into());
    (case.server.parent_span_id, case.server.parent_span_is_remote) = (SpanId::INVALID, false);
    for span in [&mut case.server, &mut case.client] {
        in_trace(span, TraceFlags::NOT_SAMPLED, "");
    }
    case
}

fn many_vendors() -> Case {
    let mut case = success();
    let state = "congo=t61rcWkgMzE,rojo@vendor=00f067aa0ba902b7,a=!~ b";
    case.record.identity.trace.as_mut().unwrap().state = state.into();
    for span in [&mut case.server, &mut case.client] {
        in_trace(span, TraceFlags::SAMPLED, state);
    }
    case
}

/// Returns an exchange in which both spans failed and no tokens were counted.
fn cut() -> Case {
    let mut case = success();
    case.record.ending = Ending::UpstreamCut;
    case.record.tokens.input_provenance = Provenance::None;
    case.record.tokens.output_provenance = Provenance::Frames;
    for span in [&mut case.server, &mut case.client] {
        span.status = Status::error("upstream_cut");
        set(span, "error.type", text("stream_truncated"));
        set(span, "tokenmeter.ending", text("upstream_cut"));
    }
    let client = &mut case.client;
    for key in ["input_tokens", "cache_read.input_tokens", "output_tokens", "reasoning.output_tokens"] {
        unset(client, &format!("gen_ai.usage.{key}"));
    }
    set(client, "tokenmeter.usage.input.provenance", text("none"));
    set(client, "tokenmeter.usage.output.provenance", text("frames"));
    set(client, "tokenmeter.estimate.output_tokens", 50.into());
    case
}

/// Returns an exchange in which only the client's span failed, without events.
fn refused() -> Case {
    let mut case = success();
    (case.record.ending, case.record.status) = (Ending::ErrorStatus, 429);
    let timing = &mut case.record.timing;
    (timing.first_chunk_ns, timing.first_token_ns, timing.first_visible_ns) = (None, None, None);
    set(&mut case.server, "http.response.status_code", 429.into());
    for span in [&mut case.server, &mut case.client] {
        set(span, "tokenmeter.ending", text("error_status"));
    }
    let client = &mut case.client;
    client.status = Status::error("error_status");
    set(client, "error.type", text("429"));
    unset(client, "gen_ai.response.time_to_first_chunk");
    unset(client, "tokenmeter.time_to_first_token");
    client.events = SpanEvents::default();
    case
}

/// Returns an exchange with every type of value.
fn all_value_types() -> Case {
    let mut case = success();
    let record = &mut case.record;
    (record.answers, record.choices) = (3, 3);
    record.finishes[2] = Some(Finish::ToolCalls);
    record.sampling.seed = Some(-5);
    record.sampling.top_p = Some(1.0);
    case.energy =
        Some(Energy { joules_nano: Some(1_500_000_000), gpu_ns: 500_000_000, utilization: Some(0.25) });
    let client = &mut case.client;
    set(client, "gen_ai.request.choice.count", 3.into());
    set(client, "gen_ai.request.seed", (-5).into());
    set(client, "gen_ai.request.top_p", 1.0.into());
    set(client, "gen_ai.response.finish_reasons", texts(&["stop", "error", "tool_call"]));
    set(client, "tokenmeter.energy.joules", 1.5.into());
    set(client, "tokenmeter.gpu.seconds", 0.5.into());
    set(client, "tokenmeter.gpu.utilization", 0.25.into());
    case
}

fn long_texts() -> Case {
    let mut case = success();
    let identity = &mut case.record.identity;
    identity.model = "é".repeat(5000).into();
    identity.response_model = Some("x€".repeat(5000).into());
    identity.tenant = "€".repeat(5000).into();
    identity.trace.as_mut().unwrap().state = format!("a={}", "b".repeat(511)).into();
    let model = "é".repeat(64);
    case.client.name = format!("chat {model}").into();
    set(&mut case.client, "gen_ai.request.model", text(model));
    set(&mut case.client, "gen_ai.response.model", text("x€".repeat(32)));
    set(&mut case.client, "tokenmeter.tenant", text("€".repeat(341)));
    for span in [&mut case.server, &mut case.client] {
        in_trace(span, TraceFlags::SAMPLED, "");
    }
    case
}

fn sorted(mut request: ExportTraceServiceRequest) -> ExportTraceServiceRequest {
    for resource in &mut request.resource_spans {
        sort_resource(&mut resource.resource);
        for span in resource.scope_spans.iter_mut().flat_map(|scope| &mut scope.spans) {
            sort(&mut span.attributes);
        }
    }
    request
}

fn ours(protocol: Protocol, exchange: Finished) -> ExportTraceServiceRequest {
    let collector = Collector::new();
    let exporter = plans::start(plan(plans::spans(protocol, collector.address)));
    exporter.submit(exchange);
    assert_eq!(exporter.shutdown(LONG).spans.sent, 2);
    let request = collector.seen().traces.pop().unwrap();
    sorted(request)
}

fn theirs(protocol: Protocol, spans: Vec<SpanData>) -> ExportTraceServiceRequest {
    let collector = Collector::new();
    Twin::spans(protocol, &collector).send(spans);
    let request = collector.seen().traces.pop().unwrap();
    sorted(request)
}

#[test]
fn spans_equal_official_ones() {
    let cases = [success, own_trace, many_vendors, cut, refused, all_value_types, long_texts];
    for (at, case) in cases.into_iter().enumerate() {
        for protocol in BOTH {
            let Case { record, energy, server, client } = case();
            let ours = ours(protocol, Finished { energy, ..finished(record) });
            let theirs = theirs(protocol, vec![server, client]);
            assert_same(&ours, &theirs, &format!("case {at}, {protocol:?}"));
        }
    }
}

#[test]
fn white_space_in_tracestate_is_kept() {
    let mut case = many_vendors();
    let state = "congo=t61rcWkgMzE, rojo@vendor=00f067aa0ba902b7 ,a=!~ b";
    case.record.identity.trace.as_mut().unwrap().state = state.into();
    for span in [&mut case.server, &mut case.client] {
        in_trace(span, TraceFlags::SAMPLED, state);
    }
    let mut ours = ours(Protocol::Http, finished(case.record));
    for span in &mut ours.resource_spans[0].scope_spans[0].spans {
        assert_eq!(span.trace_state, state);
        span.trace_state = span.trace_state.split(',').map(str::trim).collect::<Vec<_>>().join(",");
    }
    assert_same(&ours, &theirs(Protocol::Http, vec![case.server, case.client]), "white space");
}
