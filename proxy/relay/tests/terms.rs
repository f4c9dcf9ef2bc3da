//! The terms of a budget for requests that cannot be fully metered: each is rejected if its term demands it, before
//! anything goes upstream, and not otherwise.

use std::sync::Arc;

use chance::Side;
use relay::{Gap, Gate, Models, Refusal, RequestedModel, ServerKind, Terms, UnknownPaths, UsageStep};
use usage::Policy;

use crate::support::{Proxy, Upstream, eventually, upstream_body};
use crate::tenants::{answer, exchange, in_force, keys, post, server};
use crate::usage::{DONE, FINISH, HEAD, Server, USAGE, chunk, delta, record, steps};

const CHAT: &str = "/v1/chat/completions";
const KEY_A: &str = "x-api-key: key-a\r\n";
const KEY_B: &str = "x-api-key: key-b\r\n";

/// Tenant `a` is under these terms, and only the model `known` has a price.
#[derive(Debug)]
pub(crate) struct Under {
    pub(crate) terms: Terms,
    pub(crate) restricts: bool,
}

impl Models for Under {
    fn restricts(&self, tenant: &str) -> bool {
        self.restricts && tenant == "a"
    }

    fn refused(&self, _: &str, requested: &RequestedModel<'_>) -> Option<Box<str>> {
        (requested.model != "known").then(|| "It has no price.".into())
    }

    fn terms(&self, tenant: &str) -> Terms {
        if tenant == "a" { self.terms } else { Terms::default() }
    }

    fn message(&self, _: &str, gap: Gap) -> Box<str> {
        format!("No {}.", gap.name()).into()
    }
}

fn proxy(upstream: &Upstream, terms: Terms, restricts: bool) -> Proxy {
    Proxy::with(upstream.address, |plan| {
        in_force(keys())(plan);
        plan.upstreams[0].usage = Policy::Inject;
        plan.upstreams[0].kind = Some(ServerKind::Vllm);
        plan.control.gate = Some(Arc::new(Gate::with_models(Box::new(Under { terms, restricts }))));
    })
}

fn status(proxy: &Proxy, request: impl AsRef<[u8]>) -> (String, String) {
    let (head, body) = exchange(&mut proxy.connect(), request);
    (head[9..12].to_owned(), body)
}

fn bytes(fields: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A server that answers with any bytes.
fn answering() -> Upstream {
    Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            answer(peer, r#"{"model":"m","usage":{"prompt_tokens":7,"completion_tokens":2}}"#);
        }
    })
}

#[test]
fn unreadable_model_is_rejected_where_terms_demand_it() {
    if Side::Clients.excludes("another thread writes to the socket") {
        return;
    }
    let upstream = answering();
    let strict = Terms { refuse_unreadable: true, ..Terms::default() };
    let proxy = proxy(&upstream, strict, true);
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let large = format!(r#"{{"pad":"{}","model":"known"}}"#, "x".repeat(9 << 20));
    for (body, code) in [
        (br#"{"model":"known"}"#.to_vec(), None),
        (b"\xEF\xBB\xBF{\"model\":\"known\"}".to_vec(), None),
        (utf16(r#"{"model":"known"}"#), None),
        // The server's own model answers.
        (b"{}".to_vec(), None),
        (br#"{"model":"other"}"#.to_vec(), Some("model_unpriced")),
        (b"\xEF\xBB\xBF{\"model\":\"other\"}".to_vec(), Some("model_unpriced")),
        (utf16(r#"{"model":"other"}"#), Some("model_unpriced")),
        (br#"{"model":5}"#.to_vec(), Some("model_unreadable")),
        (br#"{"model":["known"]}"#.to_vec(), Some("model_unreadable")),
        (b"\x1f\x8bgzip".to_vec(), Some("model_unreadable")),
        (b"{\"model\":\"known\"".to_vec(), Some("model_unreadable")),
        (large.clone().into_bytes(), Some("model_unreadable")),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let (mut client, request) = (proxy.connect(), bytes(KEY_A, &body));
        let stream = client.stream().try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            use std::io::Write as _;
            let _ = (&stream).write_all(&request);
        });
        let head = client.head().unwrap();
        let answer = String::from_utf8(upstream_body(&mut client, &head)).unwrap();
        assert_eq!(&head[9..12], if code.is_some() { "403" } else { "200" }, "{shown}");
        if let Some(code) = code {
            assert!(answer.contains(&format!(r#""code":"{code}""#)), "{shown}: {answer}");
        }
        drop(client);
        sending.join().unwrap();
    }
    // The path names the model; and no terms apply to other tenants.
    let gemini = post("/v1beta/models/known:generateContent", KEY_A, "no JSON");
    assert_eq!(status(&proxy, gemini).0, "200");
    assert_eq!(status(&proxy, bytes(KEY_B, br#"{"model":5}"#)).0, "200");
    let seen = proxy.seen();
    let unreadable = seen.refused.iter().filter(|refusal| **refusal == Refusal::Unreadable).count();
    assert_eq!((unreadable, seen.refused.len()), (5, 8));
    assert_eq!(seen.rejected.len(), 8);
}

#[test]
fn both_names_of_a_model_need_a_price() {
    let upstream = answering();
    for (kind, statuses) in [
        (None, ["403", "403", "403", "200"]),
        (Some(ServerKind::Ollama), ["403", "200", "403", "200"]),
        (Some(ServerKind::Vllm), ["200", "403", "200", "200"]),
    ] {
        let under = Under { terms: Terms::default(), restricts: true };
        let proxy = Proxy::with(upstream.address, |plan| {
            in_force(keys())(plan);
            plan.upstreams[0].kind = kind;
            plan.control.gate = Some(Arc::new(Gate::with_models(Box::new(under))));
        });
        for (body, expected) in [
            r#"{"model":"known","MODEL":"other"}"#,
            r#"{"model":"other","MODEL":"known"}"#,
            r#"{"MODEL":"other"}"#,
            r#"{"MODEL":"known","model":"known"}"#,
        ]
        .into_iter()
        .zip(statuses)
        {
            assert_eq!(status(&proxy, post(CHAT, KEY_A, body)).0, expected, "{kind:?} {body}");
        }
    }
}

/// A request by another method than POST, or at a path that only ends like one that runs no model.
#[test]
fn unusual_method_or_control_is_rejected_or_metered() {
    let strict =
        Terms { unknown_paths: UnknownPaths::Refuse, refuse_unknown_methods: true, ..Terms::default() };
    let body = r#"{"model":"known","messages":[]}"#;
    let with = |method: &str, target: &str, field: &str, body: &str| {
        let length = body.len();
        format!(
            "{method} {target} HTTP/1.1\r\nHost: h\r\n{KEY_A}{field}Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let rows = [
        (with("PATCH", CHAT, "", body), true),
        (with("QUERY", CHAT, "", body), true),
        (with("FOO", CHAT, "", body), true),
        (with("PUT", CHAT, "X-HTTP-Method-Override: POST\r\n", body), true),
        (with("GET", CHAT, "", body), true),
        (with("DELETE", "/v1/dream", "", body), true),
        (with("GET", CHAT, "X-Method-Override: POST\r\n", ""), true),
        (with("GET", "/v1/chat/completions?_method=POST", "", ""), true),
        (with("POST", "/v1/chat/completions/cancel", "", body), true),
        (with("POST", "/%00/tokenize", "", body), true),
        (with("POST", CHAT, "", body), false),
        (with("PUT", "/generate", "", r#"{"text":"a"}"#), false),
        (with("GET", "/v1/models", "", ""), false),
        (with("OPTIONS", CHAT, "", ""), false),
        (with("POST", "/v1/responses/resp_1/cancel", "", ""), false),
    ];
    for (terms, refuses) in [(strict, true), (Terms::default(), false)] {
        let upstream = answering();
        let proxy = proxy(&upstream, terms, false);
        for (request, is_unknown) in &rows {
            let expected = if refuses && *is_unknown { "403" } else { "200" };
            assert_eq!(status(&proxy, request).0, expected, "{request}");
            // A request that passes is metered by its answer.
            if !refuses && *is_unknown {
                assert_eq!(record(&proxy).tokens.output(), 2, "{request}");
            }
            if !is_unknown
                && request.contains("HTTP/1.1")
                && request.starts_with('P')
                && !request.contains("cancel")
            {
                record(&proxy);
            }
        }
    }
}

/// A gateway behind the proxy may use any of the names.
#[test]
fn each_named_model_needs_a_price() {
    let upstream = answering();
    let under = Under { terms: Terms { refuse_unreadable: true, ..Terms::default() }, restricts: true };
    let proxy = Proxy::with(upstream.address, |plan| {
        in_force(keys())(plan);
        plan.control.gate = Some(Arc::new(Gate::with_models(Box::new(under))));
    });
    let known = r#"{"model":"known"}"#;
    for (target, field, body, expected) in [
        (CHAT, "", known, "200"),
        ("/v1/chat/completions?api-version=1", "", known, "200"),
        ("/v1/chat/completions?model=known", "X-Model: known\r\n", known, "200"),
        ("/engines/known/chat/completions", "", known, "200"),
        ("/engines/other/chat/completions", "", known, "403"),
        ("/openai/deployments/known/other/chat/completions", "", known, "403"),
        ("/openai/deployments/known%2Fother/chat/completions", "", known, "403"),
        ("/openai/deployments/known%2F..%2Fother/chat/completions", "", known, "403"),
        ("/openai/deployments/known/chat/completions", "", r#"{"model":"other"}"#, "403"),
        ("/v1/chat/completions?mod%65l=other", "", known, "403"),
        (CHAT, "X-Gateway-Model-Name: other\r\n", known, "403"),
        (CHAT, "X-Portkey-Config: pc-1\r\n", known, "403"),
        (CHAT, "", r#"{"model":"known,other"}"#, "403"),
        (CHAT, "", r#"{"model":"known","models":["known","other"]}"#, "403"),
        (CHAT, "", r#"{"model":"known","fallbacks":[{"known":["other"]}]}"#, "403"),
        (CHAT, "", r#"{"model":"known","extra_body":{"model":"other"}}"#, "403"),
        (CHAT, "", r#"{"model":"other","model":"known"}"#, "403"),
    ] {
        let fields = format!("{KEY_A}{field}");
        assert_eq!(status(&proxy, post(target, &fields, body)).0, expected, "{target} {field} {body}");
    }
}

#[test]
fn unknown_path_is_rejected_metered_or_forwarded() {
    let chat = r#"{"model":"m","messages":[],"stream":true}"#;
    for (unknown_paths, known_status) in
        [(UnknownPaths::Refuse, "403"), (UnknownPaths::Meter, "200"), (UnknownPaths::Pass, "200")]
    {
        let server = Server::streaming();
        let proxy = proxy(&server.upstream, Terms { unknown_paths, ..Terms::default() }, false);
        let (refused, answer) = status(&proxy, post("/v9/dream", KEY_A, chat));
        assert_eq!(refused, known_status, "{unknown_paths:?}");
        match unknown_paths {
            UnknownPaths::Refuse => {
                assert!(answer.contains(r#""code":"unknown_path""#), "{answer}");
                assert_eq!(proxy.seen().refused, [Refusal::UnknownPath]);
                assert_eq!(server.upstream.connections(), 0);
            }
            UnknownPaths::Meter => {
                let record = record(&proxy);
                assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2));
                assert!(server.bodies()[0].contains("include_usage"), "usage is requested");
                assert!(!answer.contains("usage"), "and removed from the response: {answer}");
            }
            UnknownPaths::Pass => {
                assert_eq!(server.bodies(), [chat]);
                assert_eq!(record(&proxy).tokens.input(), 0);
            }
        }
        // Known paths, control paths and other tenants.
        for (path, fields) in [(CHAT, KEY_A), ("/tokenize", KEY_A), ("/v9/dream", KEY_B)] {
            assert_eq!(status(&proxy, post(path, fields, chat)).0, "200", "{unknown_paths:?} {path}");
        }
    }
}

#[test]
fn uncountable_stream_is_rejected() {
    let server = Server::start(|peer, body| {
        peer.send(HEAD);
        let usage = if body.contains("include_usage") { USAGE } else { "" };
        peer.send(chunk(&format!("{}{FINISH}{usage}{DONE}", delta("a"))));
        peer.send("0\r\n\r\n");
    });
    let strict = Terms { refuse_uncountable: true, ..Terms::default() };
    let proxy = proxy(&server.upstream, strict, false);
    let digest = format!("{KEY_A}Content-Digest: x\r\n");
    for (fields, body, expected) in [
        (KEY_A, r#"{"stream":true}"#, "200"),
        (KEY_A, r#"{"stream":true,"stream_options":{"include_usage":true}}"#, "200"),
        (KEY_A, r#"{"stream":true,"stream_options":{"include_usage":false}}"#, "200"),
        (KEY_A, r#"{"stream":false}"#, "200"),
        (&digest, r#"{"stream":false}"#, "200"),
        (&digest, r#"{"stream":true}"#, "403"),
        (
            KEY_A,
            r#"{"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":true}}"#,
            "403",
        ),
        (KEY_A, r#"{"stream":true,"stream_options":7}"#, "403"),
        (KEY_A, "gzip or whatever", "403"),
    ] {
        let (refused, answer) = status(&proxy, post(CHAT, fields, body));
        assert_eq!(refused, expected, "{fields} {body}: {:?}", steps(&proxy));
        assert_eq!(answer.contains(r#""code":"uncountable""#), expected == "403", "{answer}");
    }
    assert_eq!(proxy.seen().refused, [Refusal::Uncountable; 4]);
    eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
}

#[test]
fn observed_stream_is_uncountable() {
    let server = server();
    let strict = Terms { refuse_uncountable: true, ..Terms::default() };
    let proxy = Proxy::with(server.upstream.address, |plan| {
        in_force(keys())(plan);
        plan.upstreams[0].usage = Policy::Observe;
        plan.control.gate =
            Some(Arc::new(Gate::with_models(Box::new(Under { terms: strict, restricts: false }))));
    });
    assert_eq!(status(&proxy, post(CHAT, KEY_A, r#"{"stream":true}"#)).0, "403");
    assert_eq!(status(&proxy, post(CHAT, KEY_A, "{}")).0, "200");
    assert_eq!(status(&proxy, post(CHAT, KEY_B, r#"{"stream":true}"#)).0, "200");
    assert_eq!(steps(&proxy), [UsageStep::Observed; 3]);
}
