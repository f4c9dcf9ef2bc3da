//! The two spans of an exchange: the request (SERVER, child of the caller's span), and its child, the inference
//! (CLIENT, of the convention), which begins when the request is complete. Wall time is taken once; all other times
//! add durations to it, so that a clock step cannot make a span negative.

use meter::{Ending, Record, Spans, Trace};
use metrics::Upstream;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, SpanFlags, Status};

use crate::attributes::{Attributes, scope};
use crate::finished::{self, Finished};
use crate::limits::TRACESTATE_MAX_BYTES;

/// Returns the number of spans of an exchange: 2 or 0.
pub(crate) fn count(record: &Record) -> u64 {
    if ids(record).is_some() { 2 } else { 0 }
}

fn ids(record: &Record) -> Option<(&Trace, Spans)> {
    let trace = record.identity.trace.as_deref()?;
    Some((trace, trace.spans?))
}

/// Returns a request with the spans of a batch.
pub(crate) fn request(
    batch: &[Finished],
    resource: &Resource,
    upstreams: &[Upstream],
    text_limit: usize,
) -> ExportTraceServiceRequest {
    let spans = batch.iter().flat_map(|finished| spans(finished, upstreams, text_limit)).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
    let resource = Some(resource.clone());
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }],
    }
}

fn spans(finished: &Finished, upstreams: &[Upstream], text_limit: usize) -> Vec<Span> {
    let record = &*finished.record;
    let Some((trace, ids)) = ids(record) else { return Vec::new() };
    let common = Span {
        trace_id: trace.trace_id.to_vec(),
        trace_state: if trace.state.len() <= TRACESTATE_MAX_BYTES {
            trace.state.to_string()
        } else {
            String::new()
        },
        end_time_unix_nano: record.ended_unix_ns(),
        ..Span::default()
    };
    let sampled = u32::from(trace.sampled) | SpanFlags::ContextHasIsRemoteMask as u32;
    let remote = if trace.parent.is_some() { SpanFlags::ContextIsRemoteMask as u32 } else { 0 };

    let mut list = Attributes::new(text_limit);
    let route = record.identity.dialect.route();
    server_attributes(record, ids, route, &mut list);
    let server = Span {
        span_id: ids.server.to_vec(),
        parent_span_id: trace.parent.map(Vec::from).unwrap_or_default(),
        flags: sampled | remote,
        name: route.map_or(ids.method.to_owned(), |route| format!("{} {route}", ids.method)),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: record.identity.started_unix_ns,
        attributes: list.into_list(),
        status: Some(status(record, SpanKind::Server)),
        ..common.clone()
    };

    let mut list = Attributes::new(text_limit);
    finished::request(record, upstreams, &mut list);
    finished::outcome(record, &mut list);
    finished::own(finished, &mut list);
    let role = record.identity.role;
    if !role.is_counted() {
        list.remove_gen_ai();
    }
    let operation = if role.is_counted() { record.identity.dialect.operation() } else { role.name() };
    let client = Span {
        span_id: ids.client.to_vec(),
        parent_span_id: ids.server.to_vec(),
        flags: sampled,
        name: finished::model(record).map_or(operation.to_owned(), |model| format!("{operation} {model}")),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: record.requested_unix_ns(),
        attributes: list.into_list(),
        events: if role.is_counted() { events(record) } else { Vec::new() },
        status: Some(status(record, SpanKind::Client)),
        ..common
    };
    vec![server, client]
}

fn server_attributes(record: &Record, spans: Spans, route: Option<&str>, list: &mut Attributes) {
    list.text("http.request.method", spans.method);
    list.text("url.scheme", if spans.is_tls { "https" } else { "http" });
    if let Some(route) = route {
        list.text("url.path", route);
        list.text("http.route", route);
    }
    if record.status > 0 {
        list.count("http.response.status_code", record.status.into());
    }
    if let (true, Some(error)) = (is_error(record, SpanKind::Server), record.error_type()) {
        list.text("error.type", &error.to_string());
    }
    list.text("tokenmeter.exchange.id", &record.identity.exchange.to_string());
    list.text("tokenmeter.ending", record.ending.name());
}

/// Returns the events of the response. An event at the time of the first token is omitted.
fn events(record: &Record) -> Vec<Event> {
    let timing = &record.timing;
    let further = |after: Option<u64>| after.filter(|_| after != timing.first_token_ns);
    [
        ("tokenmeter.first_token", timing.first_token_ns),
        ("tokenmeter.first_visible_token", further(timing.first_visible_ns)),
        ("tokenmeter.first_tool_call", further(timing.first_tool_ns)),
    ]
    .into_iter()
    .filter_map(|(name, after)| {
        let time_unix_nano = record.requested_unix_ns().saturating_add(after?);
        Some(Event { time_unix_nano, name: name.to_owned(), ..Event::default() })
    })
    .collect()
}

/// Returns true if a span failed. A client error or a client that left is not a failure of the server's span.
fn is_error(record: &Record, kind: SpanKind) -> bool {
    match (kind, record.ending) {
        (_, ending) if ending.is_success() => false,
        (SpanKind::Server, Ending::ClientAbort | Ending::Detached) => false,
        (SpanKind::Server, Ending::ErrorStatus) => record.status >= 500,
        _ => true,
    }
}

fn status(record: &Record, kind: SpanKind) -> Status {
    if is_error(record, kind) {
        Status { code: StatusCode::Error.into(), message: record.ending.name().to_owned() }
    } else {
        Status::default()
    }
}
