//! Exchanges by hand: which make a record, and what their ends return.

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use meter::{Close, EngineStep, ExchangeId, LoadSpan, Provenance, Record, RuleKind, Stated, Tick, TokenType};
use scan::Dialect;
use tenant::{BodyKey, Rule, Rules, Spec};
use usage::{AddedOptions, Cuts};

use super::*;

pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const CLEAN: Close = Close::Clean { whole: false };
const ANSWER: &[u8] = br#"{"model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
const UNCOUNTED: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn begin(path: &str, tenant: TenantResolution) -> Exchange {
    let route = route(None, &Method::POST, path).unwrap();
    Exchange::begin(route, &HeaderMap::new(), tenant, Setup::default(), Tick(0))
}

/// An exchange whose request has this body.
pub(crate) fn requested(path: &str, body: &str) -> Exchange {
    let mut exchange = begin(path, TenantResolution::default());
    exchange.request_body(body.as_bytes());
    exchange.request_complete(Tick(1));
    exchange.sent();
    exchange
}

fn of_type(content_type: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers
}

/// Reads the head and the body of a response.
fn answer(exchange: &mut Exchange, content_type: &'static str, body: &[u8]) {
    exchange.response_head(200, &of_type(content_type), None, Tick(2)).unwrap();
    exchange.response_body(body, Tick(3), &mut Cuts::default()).unwrap();
}

pub(crate) fn end(exchange: &mut Exchange, close: Close) -> Option<Ended> {
    let caller = CallerFacts {
        id: ExchangeId::new(7, 7),
        started_unix_ns: 7,
        request_id: Some("r-1".into()),
        upstream: "u".into(),
        provider: "p".into(),
        is_provider_known: true,
        trace: None,
    };
    exchange.end(close, LoadSpan::single(), Tick(9), caller)
}

/// Sends a request, and reads the slices of an answer with these header fields; `None` if it makes no record.
pub(crate) fn exchanged<'a>(
    (path, request): (&str, &str),
    fields: &[(&'static str, &'static str)],
    slices: impl IntoIterator<Item = &'a [u8]>,
    close: Close,
) -> Option<Record> {
    let mut exchange = requested(path, request);
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    let head = exchange.response_head(200, &headers, None, Tick(2))?;
    assert_eq!(head.unread, None);
    for slice in slices {
        exchange.response_body(slice, Tick(3), &mut Cuts::default()).unwrap();
    }
    end(&mut exchange, close).map(|ended| (*ended.record).clone())
}

#[test]
fn exchange_has_a_fixed_size() {
    let size = size_of::<Exchange>();
    assert!(size <= 1280, "{size} bytes");
}

#[test]
fn record_has_the_callers_facts() {
    let mut exchange = requested(CHAT, r#"{"model":"m","service_tier":"flex"}"#);
    answer(&mut exchange, "application/json", ANSWER);
    let ended = end(&mut exchange, CLEAN).unwrap();
    let identity = ended.record.identity.clone();
    assert_eq!((&*identity.upstream, &*identity.provider, &*identity.tenant), ("u", "p", "default"));
    assert_eq!(identity.request_id.as_deref(), Some("r-1"));
    assert_eq!((identity.exchange, identity.started_unix_ns), (ExchangeId::new(7, 7), 7));
    assert_eq!((identity.service_tier.as_deref(), identity.is_tier_reported), (Some("flex"), false));
    assert_eq!((ended.record.upstream_attempts, ended.record.tokens.output()), (1, 1));
    assert!(ended.record.ending.is_success() && !ended.is_renamed && !ended.was_unknown);
    assert!(end(&mut exchange, CLEAN).is_none(), "it ends once");
}

#[test]
fn unfinished_request_makes_a_record() {
    let mut exchange = begin(CHAT, TenantResolution::default());
    exchange.request_body(br#"{"model":"m","#);
    let record = end(&mut exchange, Close::ClientGone { whole: false }).unwrap().record;
    assert_eq!((record.identity.dialect, &*record.identity.model), (Dialect::OpenaiChat, "m"));
    assert_eq!((record.upstream_attempts, record.tokens.output_provenance), (0, Provenance::None));
}

#[test]
fn unknown_path_makes_a_record_only_with_counts() {
    let mut exchange = requested("/own", "{}");
    answer(&mut exchange, "application/json", b"{\"a\":1}");
    assert!(end(&mut exchange, CLEAN).is_none());

    let mut exchange = requested("/own", "{}");
    answer(&mut exchange, "application/json", ANSWER);
    let ended = end(&mut exchange, CLEAN).unwrap();
    assert!(ended.was_unknown && ended.is_renamed);
    assert_eq!((ended.record.tokens.output(), exchange.model_name()), (1, "m"));

    // Tokens that are not read are shown.
    let mut exchange = requested("/own", "{}");
    answer(&mut exchange, "application/json", br#"{"usage":{"token_count":12,"output_count":5}}"#);
    let record = end(&mut exchange, CLEAN).unwrap().record;
    let names: Vec<_> = record.unknown_counts.iter().map(|name| name.as_str()).collect();
    assert_eq!((record.tokens.is_counted(), names), (false, vec!["token_count"]));

    let mut exchange = requested("/own", "{}");
    assert_eq!(exchange.response_head(404, &of_type("application/json"), None, Tick(2)), None);
    assert!(!exchange.is_inference() && end(&mut exchange, CLEAN).is_none());
}

/// Bedrock's models and text-embeddings-inference; a count in the answer stands.
#[test]
fn counts_of_a_response_head_are_read_on_any_path() {
    const BEDROCK: [(&str, &str); 2] =
        [("x-amzn-bedrock-input-token-count", "26"), ("x-amzn-bedrock-output-token-count", "4")];
    const TEI: [(&str, &str); 1] = [("x-compute-tokens", "6")];
    let claude = r#"{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn",
        "usage":{"input_tokens":26,"cache_read_input_tokens":100,"output_tokens":4}}"#;
    for (path, fields, body, counts) in [
        (
            "/model/mistral.m/invoke",
            &BEDROCK[..],
            r#"{"outputs":[{"text":"x","stop_reason":"stop"}]}"#,
            [26, 4],
        ),
        ("/model/anthropic.c/invoke", &BEDROCK[..], claude, [126, 4]),
        ("/model/amazon.e/invoke", &BEDROCK[..1], r#"{"embedding":[0.5]}"#, [26, 0]),
        ("/embed", &TEI[..], "[[0.5]]", [6, 0]),
        ("/rerank", &TEI[..], r#"[{"index":0,"score":0.5}]"#, [6, 0]),
        ("/similarity", &TEI[..], "[0.5]", [6, 0]),
    ] {
        let mut exchange = requested(path, "{}");
        let mut headers = of_type("application/json");
        for (name, value) in fields {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        exchange.response_head(200, &headers, None, Tick(2)).unwrap();
        exchange.response_body(body.as_bytes(), Tick(3), &mut Cuts::default()).unwrap();
        let tokens = end(&mut exchange, CLEAN).unwrap().record.tokens;
        assert_eq!([tokens.input(), tokens.output()], counts, "{path}");
        assert_eq!(tokens.input_provenance, Provenance::Reported, "{path}");
    }
}

/// KoboldCpp's `token` is a text, not TGI's object; the total of Workers AI stands beside an empty text, not Ollama's.
#[test]
fn member_of_another_shape_is_no_mark_of_a_dialect() {
    let kobold = ["I", " see", ""]
        .map(|text| format!("data: {{\"token\":\"{text}\",\"finish_reason\":null}}\n\n"))
        .concat();
    let mut exchange = requested("/api/extra/generate/stream", "{}");
    answer(&mut exchange, "text/event-stream", kobold.as_bytes());
    let record = end(&mut exchange, CLEAN).unwrap().record;
    assert_eq!((record.identity.dialect, record.tokens.output()), (Dialect::Unknown, 3));

    let usage = |prompt: u32, output: u32| {
        format!("\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{output}}}")
    };
    let chunk = |choices: &str, usage: &str| format!("data: {{\"choices\":[{choices}],{usage}}}\n\n");
    let text = r#"{"index":0,"delta":{"content":"a"},"finish_reason":null}"#;
    let stop = r#"{"index":0,"delta":{},"finish_reason":"stop"}"#;
    let body = [
        chunk(text, &usage(147, 0)),
        chunk(text, &usage(0, 1)).repeat(15),
        chunk(stop, &usage(0, 0)),
        chunk("", &usage(0, 1)),
        format!("data: {{\"response\":\"\",{}}}\n\ndata: [DONE]\n\n", usage(147, 16)),
    ];
    let mut exchange = requested(CHAT, r#"{"stream":true}"#);
    answer(&mut exchange, "text/event-stream", body.concat().as_bytes());
    let record = end(&mut exchange, CLEAN).unwrap().record;
    assert_eq!((record.identity.dialect, record.disagreement), (Dialect::OpenaiChat, None));
    assert_eq!((record.tokens.input(), record.tokens.output()), (147, 16));
}

/// Of an unknown stream (watsonx, YandexGPT), a usage counts though some frames have no content.
#[test]
fn usage_of_an_unknown_stream_is_not_measured_by_its_frames() {
    let line = |output: u32, input: u32| {
        format!(
            "data: {{\"results\":[{{\"generated_token_count\":{output},\"input_token_count\":{input}}}]}}\n\n"
        )
    };
    let yandex = |output: u32| {
        format!(
            "{{\"result\":{{\"usage\":{{\"inputTextTokens\":\"7\",\"completionTokens\":\"{output}\"}}}}}}\n"
        )
    };
    for (path, body) in [
        ("/ml/v1/text/generation_stream", [line(0, 7), line(1, 0), line(2, 0), line(3, 0)].concat()),
        ("/foundationModels/v1/completion", [yandex(0), yandex(1), yandex(3), yandex(3)].concat()),
    ] {
        let mut exchange = requested(path, "{}");
        answer(&mut exchange, "text/event-stream", body.as_bytes());
        let tokens = end(&mut exchange, CLEAN).unwrap().record.tokens;
        assert_eq!((tokens.input(), tokens.output()), (7, 3), "{path}");
        assert_eq!(tokens.output_provenance, Provenance::Running, "{path}");
    }
}

/// The model of a form, and the type of what the endpoint generates.
#[test]
fn form_for_images_has_a_model_and_a_modality() {
    let form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nimage-1\r\n--b\r\n\
                Content-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\nPNG\r\n--b--\r\n";
    let usage = |more: &str| {
        format!(
            r#"{{"usage":{{"input_tokens":5,"input_tokens_details":{{"image_tokens":4}},"output_tokens":9{more}}}}}"#
        )
    };
    for (path, more, kind) in [
        ("/v1/images/edits", "", TokenType::OutputImage),
        (
            "/v1/images/edits",
            r#","output_tokens_details":{"text_tokens":0,"image_tokens":9}"#,
            TokenType::OutputImage,
        ),
        ("/v1/images/generations", "", TokenType::OutputImage),
        ("/v1/audio/speech", "", TokenType::OutputAudio),
        ("/v1/videos", "", TokenType::OutputVideo),
        ("/own", "", TokenType::Output),
    ] {
        let route = route(None, &Method::POST, path).unwrap();
        let headers = of_type("multipart/form-data; boundary=b");
        let mut exchange =
            Exchange::begin(route, &headers, TenantResolution::default(), Setup::default(), Tick(0));
        exchange.request_body(form.as_bytes());
        exchange.request_complete(Tick(1));
        exchange.sent();
        answer(&mut exchange, "application/json", usage(more).as_bytes());
        let record = end(&mut exchange, CLEAN).unwrap().record;
        assert_eq!(&*record.identity.model, "image-1", "{path}");
        let types = [TokenType::Input, TokenType::InputImage, kind].map(|kind| record.tokens.of(kind));
        assert_eq!(types, [1, 4, 9], "{path} {more}");
    }
}

#[test]
fn engine_makes_a_record_on_any_path() {
    for status in [None, Some(404)] {
        let mut exchange = requested("/own", "{}");
        exchange.engine_step(EngineStep { choice: 0, tokens: 3, reasoning: 0 }, Tick(2));
        if let Some(status) = status {
            let head = exchange.response_head(status, &of_type("application/octet-stream"), None, Tick(3));
            assert!(head.is_some());
        }
        let record = end(&mut exchange, CLEAN).unwrap().record;
        assert_eq!((record.tokens.output_provenance, record.tokens.output()), (Provenance::Engine, 3));
    }
}

#[test]
fn body_decides_the_tenant_only_if_whole() {
    let rules = Arc::new(Rules::new(Spec { rules: vec![Rule::Body(BodyKey::User)], ..Spec::default() }));
    for (body, tenant, rule) in
        [(r#"{"user":"acme"}"#, "acme", RuleKind::Body), (r#"{"user":"acme""#, "default", RuleKind::Default)]
    {
        let (peer, headers) = ([127, 0, 0, 1].into(), HeaderMap::new());
        let head = RequestHead { peer, certificate: None, path: CHAT, headers: &headers, now_unix_s: 0 };
        let (resolution, rejection) = TenantResolution::of_head(&rules, &mut RuleMembers::default(), &head);
        assert_eq!((resolution.rule(), rejection), (None, None));
        let mut exchange = begin(CHAT, resolution);
        exchange.request_body(body.as_bytes());
        exchange.request_complete(Tick(1));
        assert_eq!(exchange.tenant(), None);
        assert_eq!(exchange.tenant_resolution().resolve(), Some(rule), "{body}");
        assert_eq!(exchange.tenant_resolution().resolve(), None, "it is counted once");
        assert_eq!(&*end(&mut exchange, CLEAN).unwrap().record.identity.tenant, tenant, "{body}");
    }
}

#[test]
fn text_is_returned_where_no_count_is_better() {
    for (added, kept) in [("", Some(&b"hi"[..])), ("data: {\"usage\":{\"completion_tokens\":1}}\n\n", None)] {
        let mut exchange = requested(CHAT, r#"{"model":"m","stream":true}"#);
        exchange.response_head(200, &of_type("text/event-stream"), None, Tick(2)).unwrap();
        assert!(exchange.wants_text(None, true) && !exchange.wants_text(None, false));
        exchange.keep_text(100);
        let body = [added.as_bytes(), UNCOUNTED].concat();
        exchange.response_body(&body, Tick(3), &mut Cuts::default()).unwrap();
        assert_eq!(end(&mut exchange, CLEAN).unwrap().text.as_deref(), kept);
    }
}

#[test]
fn stream_without_counts_shows_it() {
    let mut exchange = requested(CHAT, r#"{"stream":true}"#);
    answer(&mut exchange, "text/event-stream", UNCOUNTED);
    let habits = end(&mut exchange, CLEAN).unwrap().habits;
    assert_eq!(habits, UsageHabits { sends_usage: false, sends_no_usage: true, reports: Some(false) });

    let mut exchange = requested(CHAT, "{}");
    answer(&mut exchange, "application/json", ANSWER);
    assert_eq!(end(&mut exchange, CLEAN).unwrap().habits, UsageHabits::default());
}

#[test]
fn added_usage_is_cut_or_reported_as_kept() {
    let added = Some(AddedOptions { include: true, continuous: false, timings: false });
    let sse = of_type("text/event-stream");
    let mut encoded = sse.clone();
    encoded.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    for (headers, expected) in [
        (&sse, Head { edits: Edits::Stream, ..Head::default() }),
        (&encoded, Head { keeps_added: true, ..Head::default() }),
        (&of_type("application/json"), Head { edits: Edits::IfStream, ..Head::default() }),
    ] {
        let mut exchange = requested(CHAT, r#"{"stream":true}"#);
        exchange.asked_more(added);
        assert_eq!(exchange.response_head(200, headers, None, Tick(2)), Some(expected));
    }
}

#[test]
fn undecodable_body_is_read_no_further() {
    let mut exchange = requested(CHAT, "{}");
    let mut headers = of_type("application/json");
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    exchange.response_head(200, &headers, None, Tick(2)).unwrap();
    let mut cuts = Cuts::default();
    assert!(exchange.response_body(b"no gzip at all, whatever it says", Tick(3), &mut cuts).is_err());
    assert!(exchange.response_body(ANSWER, Tick(4), &mut cuts).is_ok_and(|output| output.is_none()));
    let record = end(&mut exchange, CLEAN).unwrap().record;
    assert_eq!(record.tokens.output_provenance, Provenance::None);
}

#[test]
fn generated_answer_is_awaited_after_its_client_left() {
    let mut exchange = requested(CHAT, "{}");
    let mut headers = of_type("application/json");
    headers.insert(CONTENT_LENGTH, HeaderValue::from(ANSWER.len()));
    exchange.response_head(200, &headers, None, Tick(2)).unwrap();
    assert!(!exchange.client_left(false, Tick(3)) && exchange.left().is_none());
    assert!(exchange.client_left(true, Tick(3)));
    exchange.response_body(ANSWER, Tick(8), &mut Cuts::default()).unwrap();
    assert_eq!(exchange.left(), Some(Tick(3)));
    let record = end(&mut exchange, Close::ClientGone { whole: false }).unwrap().record;
    assert_eq!((record.tokens.output(), record.timing.first_byte_ns), (1, None));

    let mut stream = requested(CHAT, r#"{"stream":true}"#);
    answer(&mut stream, "text/event-stream", UNCOUNTED);
    assert!(!stream.client_left(true, Tick(4)));
}

const LINES: &[u8] = b"{\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\
    {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\
    {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n";
const NATIVE: &[u8] =
    b"{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"done\":false}\n\
    {\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\
    \"prompt_eval_count\":3,\"eval_count\":1}\n";
const TYPED: &[u8] =
    b"{\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\
    {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\
    {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\
    {\"type\":\"message_stop\"}\n";

/// The form of a body never depends on its label, or on how it is cut.
#[test]
fn body_shows_its_form_under_any_label() {
    let events = [
        &b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n"[..],
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
    ]
    .concat();
    let labels = [
        "text/event-stream",
        "Text/Event-Stream;Charset=UTF-8",
        "application/json",
        "application/x-ndjson",
        "text/plain; charset=utf-8",
        "text/html",
        "application/octet-stream",
        "",
    ];
    let bodies: [(&str, &[u8], &str); 6] = [
        (CHAT, &events, "sse"),
        (CHAT, LINES, "ndjson"),
        (CHAT, ANSWER, "json"),
        ("/api/chat", NATIVE, "ndjson"),
        ("/v1/messages", TYPED, "ndjson"),
        ("/own", ANSWER, "json"),
    ];
    for label in labels {
        for (path, body, form) in bodies {
            for size in [1, 7, 64, body.len()] {
                // A body that looks like one value on many lines is read as its label says.
                if form == "json" && label.contains("ndjson") {
                    continue;
                }
                let mut exchange = requested(path, "{}");
                let headers = if label.is_empty() { HeaderMap::new() } else { of_type(label) };
                exchange.response_head(200, &headers, None, Tick(2)).unwrap();
                for slice in body.chunks(size) {
                    exchange.response_body(slice, Tick(3), &mut Cuts::default()).unwrap();
                }
                let ended = end(&mut exchange, CLEAN).unwrap();
                let what = format!("{form} as {label} in slices of {size} at {path}");
                let record = &ended.record;
                assert_eq!((record.tokens.input(), record.tokens.output()), (3, 1), "{what}");
                assert_eq!(
                    (record.streamed, &*record.identity.model),
                    (form != "json", model(body)),
                    "{what}"
                );
                assert!(record.ending.is_success(), "{what}: {:?}", record.ending);
                let stated = match label {
                    "text/event-stream" | "Text/Event-Stream;Charset=UTF-8" => "sse",
                    "application/json" => "json",
                    "application/x-ndjson" => "ndjson",
                    _ => "other",
                };
                let expected = (stated != form && !label.is_empty()).then_some(stated);
                assert_eq!(ended.mislabelled.map(Stated::name), expected, "{what}");
                assert!(!ended.is_unreadable && !ended.keeps_added && ended.unparsed == 0, "{what}");
            }
        }
    }
}

/// The model that a body of this test names.
fn model(body: &[u8]) -> &'static str {
    if body.windows(7).any(|part| part == b"\"model\"") { "m" } else { "_unknown" }
}

#[test]
fn body_of_no_form_is_said() {
    for (label, said) in [("application/octet-stream", true), ("text/plain", true), ("image/png", false)] {
        let mut exchange = requested(CHAT, "{}");
        let head = exchange.response_head(200, &of_type(label), None, Tick(2)).unwrap();
        assert_eq!(head.unread.is_some(), !said, "{label}");
        exchange.response_body(b"\x89PNG {\"usage\":{}}", Tick(3), &mut Cuts::default()).unwrap();
        let ended = end(&mut exchange, CLEAN).unwrap();
        assert_eq!((ended.is_unreadable, ended.mislabelled), (said, None), "{label}");
    }
}

/// An answer that was counted when it was generated is not counted again.
#[test]
fn past_answers_are_not_counted_again() {
    const PAST: &str = r#"{"id":"chatcmpl-7","object":"chat.completion","model":"m","choices":[{"message":{"content":"hi"},
        "finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    let list = format!(r#"{{"object":"list","data":[{PAST}],"has_more":false}}"#);
    let logs = format!(
        r#"[{{"request_id":"chatcmpl-7","total_tokens":4,"prompt_tokens":3,"completion_tokens":1,"response":{PAST}}}]"#
    );
    let run = r#"{"messages":[]}"#;
    for (path, request, answered, counts) in [
        // Stored answers, by their ids.
        ("/v1/chat/completions/chatcmpl-7", r#"{"metadata":{"a":"b"}}"#, PAST, false),
        ("/v1/chat/completions/chatcmpl-7/messages/", "{}", PAST, false),
        ("/v1/chat/completions/chatcmpl-8", r#"{"metadata":{"a":"b"}}"#, PAST, true),
        ("/v1/chat/completions/chatcmpl-7", run, PAST, true),
        // Polls, which name them in the body.
        ("/v1/jobs/fetch", r#"{"id":"chatcmpl-7"}"#, PAST, false),
        ("/v1/jobs/fetch", r#"{"job":{"response_ids":["x","chatcmpl-7"]},"wait":true}"#, PAST, false),
        ("/v1/jobs/fetch?id=chatcmpl%2D7", "{}", PAST, false),
        ("/v1/jobs/fetch", r#"{"id":"chatcmpl-8"}"#, PAST, true),
        ("/v1/own", r#"{"model":"m"}"#, PAST, true),
        // A run that names the id of its answer beforehand.
        ("/v1/own", r#"{"id":"chatcmpl-7","messages":[]}"#, PAST, true),
        ("/v1/chat/completions/chatcmpl-7", "{", PAST, true),
        // Lists of answers, and logs of what they cost.
        ("/v1/chat/completions/search", "{}", &list, false),
        ("/spend/logs", "{}", &logs, false),
        ("/spend/logs/v2", "{}", &list, false),
        // Counts of prompts that run no model.
        ("/v1/own/count", run, r#"{"input_tokens":3}"#, false),
        ("/v1beta/models/g-2:countTokens", r#"{"contents":[]}"#, r#"{"totalTokens":3}"#, false),
    ] {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut exchange = begin(path, TenantResolution::default());
        exchange.asked_at(path, query, &HeaderMap::new());
        request.as_bytes().chunks(3).for_each(|slice| exchange.request_body(slice));
        exchange.request_complete(Tick(1));
        exchange.sent();
        answer(&mut exchange, "application/json", answered.as_bytes());
        let is_counted = end(&mut exchange, CLEAN).is_some_and(|ended| !ended.is_named);
        assert_eq!(is_counted, counts, "{path} {request}");
    }
    for (method, path) in [
        (Method::GET, "/v1/chat/completions/chatcmpl-7"),
        (Method::GET, "/v1/chat/completions"),
        (Method::GET, "/v1/responses/resp_7"),
        (Method::GET, "/spend/logs"),
        (Method::POST, "/v1/messages/count_tokens"),
        (Method::POST, "/v1/responses/input_tokens"),
    ] {
        assert!(route(None, &method, path).is_err(), "{method} {path}");
    }
}

#[test]
fn answered_id_is_known_again() {
    let ids = AnsweredIds::new();
    assert_eq!([ids.add("a"), ids.add("b"), ids.add("a"), ids.add("b")], [false, false, true, true]);
    // An old id gives its place to another one.
    (0..100_000).for_each(|number| _ = ids.add(&format!("x-{number}")));
    assert!(!ids.add("a"));
}

/// A stream whose client chose a form without usage is not charged by its frames, which would be cheaper.
#[test]
fn chosen_form_without_usage_is_uncounted() {
    const FRAMES: &[u8] = b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    let path = "/v1beta/models/g-2:streamGenerateContent";
    for (query, provenance) in [
        ("alt=sse", Provenance::Frames),
        ("alt=sse&fields=candidates", Provenance::None),
        ("$alt=sse&%24fields=candidates", Provenance::None),
    ] {
        let mut exchange = begin(path, TenantResolution::default());
        exchange.asked_at(path, Some(query), &HeaderMap::new());
        exchange.request_body(br#"{"contents":[]}"#);
        exchange.request_complete(Tick(1));
        exchange.sent();
        assert_eq!(exchange.may_hide_counts(None), provenance == Provenance::None, "{query}");
        answer(&mut exchange, "text/event-stream", FRAMES);
        let record = end(&mut exchange, CLEAN).unwrap().record;
        assert_eq!(record.tokens.output_provenance, provenance, "{query}");
    }
}

/// SGLang's answers for Vertex AI are an object with the array that it has elsewhere.
#[test]
fn vertex_answers_of_sglang_count() {
    let body = br#"{"predictions":[{"text":"a","meta_info":{"prompt_tokens":3,"completion_tokens":2,"finish_reason":{"type":"stop"}}},
        {"text":"b","meta_info":{"prompt_tokens":3,"completion_tokens":4,"finish_reason":{"type":"stop"}}}]}"#;
    let request = r#"{"instances":[{"text":"x"},{"text":"y"}]}"#;
    let fields = [("content-type", "application/json")];
    let record = exchanged(("/vertex_generate", request), &fields, [&body[..]], CLEAN).unwrap();
    assert_eq!(record.tokens.output(), 6);
    let mut exchange = begin("/vertex_generate", TenantResolution::default());
    exchange.asked_at("/vertex_generate", None, &HeaderMap::new());
    assert!(exchange.may_hide_counts(None));
}
