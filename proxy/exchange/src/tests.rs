//! Exchanges by hand: which make a record, and what their ends return.

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use meter::{Close, EngineStep, ExchangeId, LoadSpan, Provenance, RuleKind, Tick};
use scan::Dialect;
use tenant::{BodyKey, Rule, Rules, Spec};
use usage::{AddedOptions, Cuts};

use super::*;

const CHAT: &str = "/v1/chat/completions";
const CLEAN: Close = Close::Clean { whole: false };
const ANSWER: &[u8] = br#"{"model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
const UNCOUNTED: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn begin(path: &str, tenant: TenantResolution) -> Exchange {
    let route = route(None, &Method::POST, path).unwrap();
    Exchange::begin(route, &HeaderMap::new(), tenant, Setup::default(), Tick(0))
}

/// An exchange whose request has this body.
fn requested(path: &str, body: &str) -> Exchange {
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

fn end(exchange: &mut Exchange, close: Close) -> Option<Ended> {
    let caller = CallerFacts {
        id: ExchangeId::new(7, 7),
        started_unix_ns: 7,
        request_id: Some("r-1".into()),
        upstream: "u".into(),
        provider: "p".into(),
        trace: None,
    };
    exchange.end(close, LoadSpan::single(), Tick(9), caller)
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

    let mut exchange = requested("/own", "{}");
    assert_eq!(exchange.response_head(404, &of_type("application/json"), None, Tick(2)), None);
    assert!(!exchange.is_inference() && end(&mut exchange, CLEAN).is_none());
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
        (&sse, Head { unread: None, edited: true, keeps_added: false }),
        (&encoded, Head { unread: None, edited: false, keeps_added: true }),
        (&of_type("application/json"), Head::default()),
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
