//! Spans of exchanges.

use meter::{Ending, Provenance, Record, Role, TokenType};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use otlp::{Energy, Finished, Protocol};
use scan::{Dialect, Finish, Name};

use crate::collector::Collector;
use crate::exchanges::{CALLER, CLIENT, SERVER, STARTED, TRACE, UPLOAD, chat, finished, said, untraced};
use crate::plans::{self, BOTH, LONG};

/// Returns the two received spans of an exchange.
fn arrive(protocol: Protocol, exchange: &Finished) -> (Span, Span) {
    let collector = Collector::new();
    let exporter = plans::start(plans::spans(protocol, collector.address));
    exporter.submit(exchange.clone());
    let counts = exporter.shutdown(LONG);
    assert_eq!((counts.spans.made, counts.spans.sent, counts.spans.queued), (2, 2, 0));
    let mut spans = collector.seen().spans();
    assert_eq!(spans.len(), 2);
    let client = spans.pop().unwrap();
    (spans.pop().unwrap(), client)
}

fn client(record: Record) -> Span {
    arrive(Protocol::Http, &finished(record)).1
}

fn code(span: &Span) -> i32 {
    span.status.as_ref().map_or(0, |status| status.code)
}

#[test]
fn spans_nest_caller_request_inference() {
    for protocol in BOTH {
        let (server, client) = arrive(protocol, &finished(chat()));
        for span in [&server, &client] {
            assert_eq!(span.trace_id, TRACE);
            assert_eq!(span.trace_state, "vendor=x");
            assert_eq!(span.end_time_unix_nano, STARTED + UPLOAD + 2_000_000_000);
        }
        assert_eq!(server.start_time_unix_nano, STARTED);
        assert_eq!(client.start_time_unix_nano, STARTED + UPLOAD, "t0, at the end of the upload");
        assert_eq!((&*server.span_id, &*server.parent_span_id), (&SERVER[..], &CALLER[..]));
        assert_eq!((&*client.span_id, &*client.parent_span_id), (&CLIENT[..], &SERVER[..]));
        assert_eq!((server.kind, client.kind), (SpanKind::Server as i32, SpanKind::Client as i32));
        // Sampled; the parent's remoteness is known: the caller is remote, the request's span is not.
        assert_eq!((server.flags, client.flags), (0x301, 0x101));
        assert_eq!(server.name, "POST /v1/chat/completions");
        assert_eq!(client.name, "chat qwen3-8b");
        assert_eq!((code(&server), code(&client)), (0, 0));
    }
}

#[test]
fn request_has_its_method_and_scheme() {
    let mut record = chat();
    record.identity.dialect = Dialect::Sglang;
    let spans = record.identity.trace.as_mut().unwrap().spans.as_mut().unwrap();
    (spans.method, spans.is_tls) = ("PUT", true);
    let (server, _) = arrive(Protocol::Http, &finished(record));
    assert_eq!(server.name, "PUT /generate");
    for (key, value) in [("http.request.method", "PUT"), ("url.scheme", "https")] {
        assert_eq!(said(&server.attributes, key).as_deref(), Some(value), "{key}");
    }
}

#[test]
fn trace_that_starts_here_has_no_parent() {
    let mut record = chat();
    record.identity.trace.as_mut().unwrap().parent = None;
    let (server, _) = arrive(Protocol::Http, &finished(record));
    assert_eq!((server.parent_span_id, server.flags), (vec![], 0x101));
}

#[test]
fn exchange_without_span_ids_has_no_spans() {
    let collector = Collector::new();
    let exporter = plans::start(plans::spans(Protocol::Http, collector.address));
    exporter.submit(finished(untraced()));
    assert_eq!(exporter.shutdown(LONG).spans.made, 0);
    assert_eq!(collector.seen().connections, 0);
}

#[test]
fn inference_has_attributes_of_convention() {
    let energy =
        Some(Energy { joules_nano: Some(1_500_000_000), gpu_ns: 500_000_000, utilization: Some(0.25) });
    let exchange = Finished { energy, ..finished(chat()) };
    let (server, client) = arrive(Protocol::Grpc, &exchange);
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "vllm"),
        ("gen_ai.request.model", "qwen3-8b"),
        ("gen_ai.response.model", "qwen3-8b-fp8"),
        ("gen_ai.response.id", "chatcmpl-1"),
        ("gen_ai.request.previous_response.id", "resp_0"),
        ("gen_ai.conversation.id", "conv_1"),
        ("gen_ai.response.finish_reasons", "stop"),
        ("gen_ai.response.time_to_first_chunk", "0.195"),
        ("tokenmeter.time_to_first_token", "0.2"),
        ("gen_ai.request.stream", "true"),
        ("gen_ai.request.temperature", "0.7"),
        ("gen_ai.request.max_tokens", "256"),
        ("gen_ai.usage.input_tokens", "120"),
        ("gen_ai.usage.cache_read.input_tokens", "100"),
        ("gen_ai.usage.output_tokens", "50"),
        ("gen_ai.usage.reasoning.output_tokens", "10"),
        ("tokenmeter.usage.input.provenance", "reported"),
        ("tokenmeter.usage.output.provenance", "reported"),
        ("server.address", "10.0.0.7"),
        ("server.port", "8000"),
        ("tokenmeter.ending", "complete"),
        ("tokenmeter.tenant", "default"),
        ("tokenmeter.upstream", "gpu-1"),
        ("tokenmeter.exchange.id", "abababab-abab-abab-abab-abababababab"),
        ("tokenmeter.concurrency", "2.5"),
        ("tokenmeter.energy.joules", "1.5"),
        ("tokenmeter.gpu.seconds", "0.5"),
        ("tokenmeter.gpu.utilization", "0.25"),
    ] {
        assert_eq!(said(&client.attributes, key).as_deref(), Some(value), "{key}");
    }
    for key in [
        "error.type",
        "gen_ai.request.choice.count",
        "gen_ai.request.seed",
        "gen_ai.usage.cache_write.input_tokens",
    ] {
        assert_eq!(said(&client.attributes, key), None, "{key}");
    }
    for (key, value) in [
        ("http.request.method", "POST"),
        ("url.scheme", "http"),
        ("url.path", "/v1/chat/completions"),
        ("http.route", "/v1/chat/completions"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(said(&server.attributes, key).as_deref(), Some(value), "{key}");
    }
}

#[test]
fn span_has_the_servers_own_report() {
    let mut record = chat();
    let server = record.timing.server.get_or_insert_default();
    (server.queue_ns, server.prefill_ns) = (Some(12_500_000), Some(70_000_000));
    (server.draft_tokens, server.accepted_draft_tokens) = (Some(129), Some(10));
    let span = client(record);
    for (key, value) in [
        ("tokenmeter.upstream_queue", Some("0.0125")),
        ("tokenmeter.upstream_prefill", Some("0.07")),
        ("tokenmeter.upstream_decode", None),
        ("tokenmeter.draft_tokens", Some("129")),
        ("tokenmeter.draft_tokens.accepted", Some("10")),
    ] {
        assert_eq!(said(&span.attributes, key).as_deref(), value, "{key}");
    }
}

#[test]
fn events_of_same_time_are_not_repeated() {
    let mut record = chat();
    record.timing.first_tool_ns = record.timing.first_token_ns;
    let span = client(record);
    let since_t0 = |at: u64| at - STARTED - UPLOAD;
    let events: Vec<_> = span.events.iter().map(|e| (&*e.name, since_t0(e.time_unix_nano))).collect();
    assert_eq!(
        events,
        [("tokenmeter.first_token", 200_000_000), ("tokenmeter.first_visible_token", 900_000_000)]
    );
}

#[test]
fn estimate_never_has_name_of_convention() {
    for (provenance, counted) in Provenance::ALL.into_iter().zip([true, true, true, true, true, false, false])
    {
        let mut record = chat();
        record.tokens.input_provenance = provenance;
        record.tokens.output_provenance = provenance;
        let attributes = client(record).attributes;
        let usage = attributes.iter().filter(|attribute| attribute.key.starts_with("gen_ai.usage.")).count();
        assert_eq!(usage > 0, counted, "{provenance:?}");
        let name = Some(provenance.name().to_owned());
        assert_eq!(said(&attributes, "tokenmeter.usage.output.provenance"), name);
        let estimate = said(&attributes, "tokenmeter.estimate.output_tokens");
        assert_eq!(estimate.is_some(), provenance == Provenance::Frames);
    }
}

#[test]
fn tokens_of_each_modality_are_attributes() {
    let mut record = chat();
    record.tokens.by_type = [0; TokenType::ALL.len()];
    let counts = [
        (TokenType::Input, 10),
        (TokenType::InputImage, 1000),
        (TokenType::InputVideo, 100),
        (TokenType::Output, 7),
        (TokenType::OutputReasoning, 3),
        (TokenType::OutputImage, 1290),
    ];
    for (kind, n) in counts {
        record.tokens.by_type[kind as usize] = n;
    }
    let attributes = client(record.clone()).attributes;
    for (key, value) in [
        ("gen_ai.usage.input_tokens", "1110"),
        ("gen_ai.usage.text.input_tokens", "10"),
        ("gen_ai.usage.image.input_tokens", "1000"),
        ("tokenmeter.usage.video.input_tokens", "100"),
        ("gen_ai.usage.text.output_tokens", "10"),
        ("gen_ai.usage.image.output_tokens", "1290"),
    ] {
        assert_eq!(said(&attributes, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(said(&attributes, "gen_ai.usage.audio.input_tokens"), None);
    record.tokens.by_type[TokenType::InputCached as usize] = 5;
    let text = said(&client(record).attributes, "gen_ai.usage.text.input_tokens");
    assert_eq!(text, None, "the modality of cached tokens is unknown");
}

#[test]
fn cached_tokens_of_each_modality_are_attributes() {
    let mut record = chat();
    for (kind, n) in [
        (TokenType::Input, 10),
        (TokenType::InputCached, 5),
        (TokenType::InputAudio, 20),
        (TokenType::InputCachedAudio, 7),
        (TokenType::InputCachedImage, 3),
    ] {
        record.tokens.by_type[kind as usize] = n;
    }
    let attributes = client(record.clone()).attributes;
    for (key, value) in [
        ("gen_ai.usage.input_tokens", "45"),
        ("gen_ai.usage.cache_read.input_tokens", "15"),
        ("gen_ai.usage.text.cache_read.input_tokens", "5"),
        ("gen_ai.usage.audio.cache_read.input_tokens", "7"),
        ("gen_ai.usage.image.cache_read.input_tokens", "3"),
        ("gen_ai.usage.text.input_tokens", "15"),
        ("gen_ai.usage.audio.input_tokens", "27"),
        ("gen_ai.usage.image.input_tokens", "3"),
    ] {
        assert_eq!(said(&attributes, key).as_deref(), Some(value), "{key}");
    }
    // Cached tokens of videos have no type, so the rest may be theirs.
    record.tokens.by_type[TokenType::InputVideo as usize] = 100;
    let attributes = client(record).attributes;
    for key in ["gen_ai.usage.text.cache_read.input_tokens", "gen_ai.usage.text.input_tokens"] {
        assert_eq!(said(&attributes, key), None, "{key}");
    }
}

#[test]
fn stored_prompt_and_compaction_are_attributes() {
    let mut record = chat();
    let keys = ["gen_ai.prompt.name", "gen_ai.prompt.version", "gen_ai.conversation.compacted"];
    let told = |record: &Record| {
        let attributes = client(record.clone()).attributes;
        keys.map(|key| said(&attributes, key).unwrap_or_default())
    };
    assert_eq!(told(&record), ["", "", ""]);
    record.is_compacted = true;
    let links = record.identity.links.as_mut().unwrap();
    links.prompt_version = Name::cut(b"2");
    assert_eq!(told(&record), ["", "", "true"], "a version of no prompt");
    record.identity.links.as_mut().unwrap().prompt = Name::cut(b"pmpt_1");
    assert_eq!(told(&record), ["pmpt_1", "2", "true"]);
}

#[test]
fn service_tiers_of_openai_are_attributes() {
    let keys = ["openai.api.type", "openai.request.service_tier", "openai.response.service_tier"];
    let chat_api = "chat_completions";
    for (provider, requested, served, expected) in [
        ("vllm", Some("flex"), Some("default"), ["", "", ""]),
        ("openai", None, None, [chat_api, "", ""]),
        ("openai", Some("auto"), Some("default"), [chat_api, "", "default"]),
        ("openai", Some("priority"), Some("priority"), [chat_api, "priority", "priority"]),
        ("openai", Some("flex"), None, [chat_api, "flex", ""]),
    ] {
        let mut record = chat();
        let identity = &mut record.identity;
        identity.provider = provider.into();
        identity.requested_tier = requested.map(Into::into);
        identity.service_tier = served.or(requested).map(Into::into);
        identity.is_tier_reported = served.is_some();
        let attributes = client(record).attributes;
        let told = keys.map(|key| said(&attributes, key).unwrap_or_default());
        assert_eq!(told, expected, "{provider} {requested:?} {served:?}");
    }
}

#[test]
fn cache_writes_of_each_lifetime_are_one_attribute() {
    let mut record = chat();
    for (kind, n) in [(TokenType::InputCacheWrite, 5), (TokenType::InputCacheWrite1h, 7)] {
        record.tokens.by_type[kind as usize] = n;
    }
    let written = said(&client(record).attributes, "gen_ai.usage.cache_write.input_tokens");
    assert_eq!(written.as_deref(), Some("12"));
}

#[test]
fn answer_without_finish_reason_is_error() {
    let mut record = chat();
    record.answers = 3;
    record.choices = 3;
    record.finishes[1] = None;
    record.finishes[2] = Some(Finish::ToolCalls);
    record.ending = Ending::ClientAbort;
    let attributes = client(record).attributes;
    let reasons = said(&attributes, "gen_ai.response.finish_reasons");
    assert_eq!(reasons.as_deref(), Some("stop error tool_call"));
    assert_eq!(said(&attributes, "gen_ai.request.choice.count").as_deref(), Some("3"));
}

#[test]
fn error_and_failed_span_follow_ending() {
    // Ending, HTTP status, error.type, true if the server's span failed.
    let endings = [
        (Ending::Complete, 200, None, false),
        (Ending::Length, 200, None, false),
        (Ending::ClientAbort, 200, Some("client_disconnect"), false),
        (Ending::UpstreamCut, 200, Some("stream_truncated"), true),
        (Ending::ErrorInBand, 200, Some("error_in_band"), true),
        (Ending::ErrorStatus, 429, Some("429"), false),
        (Ending::ErrorStatus, 503, Some("503"), true),
        (Ending::NoOutput, 200, Some("no_output"), true),
        (Ending::Detached, 202, Some("no_output"), false),
        (Ending::ProxyError, 0, Some("_OTHER"), true),
    ];
    for (ending, status, error, server_failed) in endings {
        let mut record = chat();
        (record.ending, record.status) = (ending, status);
        let (server, client) = arrive(Protocol::Http, &finished(record));
        assert_eq!(said(&client.attributes, "error.type").as_deref(), error, "{ending:?}");
        assert_eq!(code(&client) == StatusCode::Error as i32, error.is_some(), "{ending:?}");
        assert_eq!(code(&server) == StatusCode::Error as i32, server_failed, "{ending:?} {status}");
        let of_server = said(&server.attributes, "error.type");
        assert_eq!(of_server.as_deref(), error.filter(|_| server_failed), "{ending:?}");
    }
}

#[test]
fn names_are_bounded() {
    let secret = "sk-canary-".to_owned() + &"é\u{1b}[31m".repeat(5000);
    let mut record = chat();
    record.identity.model = (&*secret).into();
    record.identity.response_model = Some((&*secret).into());
    record.identity.response_id = Some((&*secret).into());
    record.identity.tenant = (&*secret).into();
    record.identity.trace.as_mut().unwrap().state = (&*secret).into();
    let span = client(record);
    assert!(span.name.len() <= "chat ".len() + 128, "{}", span.name.len());
    assert_eq!(span.trace_state, "");
    for attribute in &span.attributes {
        let length = said(&span.attributes, &attribute.key).unwrap().len();
        assert!(length <= 1024, "{} has {length} bytes", attribute.key);
    }
}

#[test]
fn unnamed_model_is_omitted() {
    let mut record = chat();
    record.identity.model = metrics::UNKNOWN.into();
    record.identity.dialect = Dialect::Unknown;
    let (server, client) = arrive(Protocol::Http, &finished(record));
    assert_eq!((&*server.name, &*client.name), ("POST", "text_completion"));
    assert_eq!(said(&client.attributes, "gen_ai.request.model"), None);
    assert_eq!(said(&server.attributes, "http.route"), None);
    assert_eq!(said(&server.attributes, "url.path"), None);
}

/// The decode leg has the convention's attributes.
#[test]
fn prefill_leg_has_no_convention_attributes() {
    let mut leg = chat();
    leg.identity.role = Role::Prefill;
    leg.identity.request_id = Some("req-7".into());
    leg.cached_excess = 1_945;
    leg.disagreement = Some(meter::Disagreement::CachedExcess);
    let span = client(leg);
    assert!(span.attributes.iter().all(|attribute| !attribute.key.starts_with("gen_ai.")));
    assert!(span.name.starts_with("prefill "), "{}", span.name);
    assert!(span.events.is_empty());
    for (key, value) in [
        ("tokenmeter.role", "prefill"),
        ("tokenmeter.request.id", "req-7"),
        ("tokenmeter.leg.prompt_tokens", "120"),
        ("tokenmeter.cached_excess", "1945"),
        ("tokenmeter.usage_disagreement", "cached_excess"),
    ] {
        assert_eq!(said(&span.attributes, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(said(&client(chat()).attributes, "tokenmeter.role"), None);
}
