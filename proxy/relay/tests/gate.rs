//! A tenant that may not spend gets an error in the shape of its dialect, before anything goes upstream.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use chance::Side;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use meter::Ending;
use relay::{Gate, Refusal, Refused, RuleKind};
use tenant::{BodyKey, EndUser, Rule, Spec};
use usage::Policy;

use crate::support::http2::{connect, run};
use crate::support::{CANCEL, PROMPT, Proxy, Upstream, eventually, now};
use crate::tenants::{answer, exchange, in_force, keys, post, rules, server};
use crate::usage::{Server, chunk, policy, record};

const CHAT: &str = "/v1/chat/completions";
const KEY_A: &str = "x-api-key: key-a\r\n";

pub(crate) fn refusing(tenants: &[&str]) -> HashMap<Arc<str>, Refused> {
    let refused = Refused { retry_after_s: 3600, message: "The \"budget\" is spent.".into() };
    tenants.iter().map(|tenant| (Arc::from(*tenant), refused.clone())).collect()
}

/// A proxy with a gate that rejects `tenants`, and the gate.
fn gated(server: &Server, spec: Spec, tenants: &[&str]) -> (Proxy, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    gate.refuse(refusing(tenants));
    let given = Arc::clone(&gate);
    let proxy = Proxy::with(server.upstream.address, |plan| {
        in_force(spec)(plan);
        plan.control.gate = Some(given);
    });
    (proxy, gate)
}

#[test]
fn rejection_has_the_shape_of_its_dialect() {
    let server = server();
    let (proxy, _gate) = gated(&server, Spec::default(), &["default"]);
    let openai = r#"{"error":{"message":"The \"budget\" is spent.","type":"budget_exceeded","param":null,"code":"budget_exceeded"}}"#;
    for (path, body) in [
        (CHAT, openai),
        ("/v1/completions", openai),
        ("/v1/responses", openai),
        ("/v1/embeddings", openai),
        ("/inference/v1/generate", openai),
        ("/nobody/knows/this", openai),
        (
            "/v1/messages",
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"The \"budget\" is spent."}}"#,
        ),
        ("/api/chat", r#"{"error":"The \"budget\" is spent."}"#),
        ("/api/generate", r#"{"error":"The \"budget\" is spent."}"#),
        ("/v2/models/m/generate", r#"{"error":"The \"budget\" is spent."}"#),
        ("/generate_stream", r#"{"error":"The \"budget\" is spent.","error_type":"budget_exceeded"}"#),
        (
            "/completion",
            r#"{"error":{"code":429,"message":"The \"budget\" is spent.","type":"budget_exceeded"}}"#,
        ),
        (
            "/v1beta/models/g:generateContent",
            r#"{"error":{"code":429,"message":"The \"budget\" is spent.","status":"RESOURCE_EXHAUSTED"}}"#,
        ),
        ("/v2/chat", r#"{"message":"The \"budget\" is spent."}"#),
    ] {
        let (head, answer) = exchange(&mut proxy.connect(), post(path, "", r#"{"stream":true}"#));
        assert!(head.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{path}: {head}");
        let head = head.to_ascii_lowercase();
        assert!(head.contains("\r\nretry-after: 3600\r\n"), "{path}: {head}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{path}: {head}");
        assert_eq!(answer, body, "{path}");
        assert_eq!(proxy.seen().refused.pop(), Some(Refusal::Budget), "{path}");
    }
    eventually("the in-flight gauge is zero", || proxy.seen().seated == 0 && proxy.running.in_flight() == 0);
    assert_eq!(server.upstream.connections(), 0);
    assert!(proxy.inbox.recv_timeout(CANCEL).is_err(), "there is nothing to bill");
    assert!(proxy.seen().usage.is_empty(), "no step was taken for its usage");
    assert!(proxy.seen().lost.is_empty());
}

#[test]
fn only_rejected_tenants_are_rejected() {
    let server = server();
    let (proxy, gate) = gated(&server, keys(), &["a"]);
    let status = |fields: &str| exchange(&mut proxy.connect(), post(CHAT, fields, "{}")).0[9..12].to_owned();
    assert_eq!([status(KEY_A), status("x-api-key: key-b\r\n"), status("")], ["429", "200", "200"]);
    gate.refuse(refusing(&["b", "default"]));
    assert_eq!([status(KEY_A), status("x-api-key: key-b\r\n"), status("")], ["200", "429", "429"]);
    gate.refuse(HashMap::new());
    assert_eq!([status(KEY_A), status("x-api-key: key-b\r\n"), status("")], ["200", "200", "200"]);
    assert_eq!(proxy.seen().refused, [Refusal::Budget; 3]);
}

/// A client that sends many requests at once, all of which the proxy answers itself, gets one answer in its turn.
#[test]
fn pipelined_rejections_leave_turns_to_others() {
    let server = server();
    let (proxy, _gate) = gated(&server, keys(), &["a", "b"]);
    let mut clients = [KEY_A, "x-api-key: key-b\r\n"].map(|key| {
        let mut client = proxy.connect();
        exchange(&mut client, post(CHAT, key, ""));
        (client, post(CHAT, key, "").repeat(100))
    });
    // The worker waits for this at its next request.
    let held = proxy.seen();
    clients.iter_mut().for_each(|(client, requests)| client.send(requests));
    drop(held);
    eventually("all are answered", || proxy.seen().rejected.len() == 202);
    let turns = proxy.seen().rejected.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(turns > 100, "{turns}");
}

#[test]
fn requests_without_cost_pass() {
    let server = server();
    let (proxy, _gate) = gated(&server, Spec::default(), &["default"]);
    let mut client = proxy.connect();
    for request in ["GET /v1/models", "GET /health", "POST /tokenize", "OPTIONS /v1/chat/completions"] {
        let (head, _) = exchange(&mut client, format!("{request} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 200"), "{request}: {head}");
    }
    assert!(proxy.seen().refused.is_empty());
}

/// The bytes of a tunnel are not read, so the gate is checked by the head before the tunnel is opened.
#[test]
fn exhausted_budget_opens_no_tunnel() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let user = || rules(vec![Rule::Body(BodyKey::User)]);
    for (spec, fields, path, refused, status, rule) in [
        (keys(), KEY_A, "/v1/realtime", "a", "429", RuleKind::ApiKey),
        (keys(), KEY_A, "/v1/chat/completions", "a", "429", RuleKind::ApiKey),
        (keys(), KEY_A, "/v1/realtime", "b", "101", RuleKind::ApiKey),
        (keys(), "", "/v1/realtime", "default", "429", RuleKind::Default),
        // A GET has no body.
        (user(), "", "/v1/realtime", "default", "429", RuleKind::Default),
    ] {
        let upstream = Upstream::start(move |peer, _| {
            peer.head();
            peer.send(switch);
        });
        let gate = Arc::new(Gate::default());
        gate.refuse(refusing(&[refused]));
        let proxy = Proxy::with(upstream.address, |plan| {
            in_force(spec)(plan);
            plan.control.gate = Some(gate);
        });
        let mut client = proxy.connect();
        client.send(format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\n{fields}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        ));
        let head = client.head().unwrap();
        assert_eq!(&head[9..12], status, "{path} {refused}");
        assert_eq!(proxy.seen().rules, [rule]);
        if status == "429" {
            assert!(head.to_ascii_lowercase().contains("\r\nretry-after: 3600\r\n"), "{head}");
            assert!(client.rest().contains("budget_exceeded"));
            assert_eq!(upstream.connections(), 0);
            assert_eq!(proxy.seen().refused, [Refusal::Budget]);
            assert_eq!(proxy.seen().rejected, [(refused.to_owned(), Refusal::Budget)]);
            assert!(proxy.seen().passed.is_empty());
        } else {
            assert!(proxy.seen().refused.is_empty() && proxy.seen().rejected.is_empty());
        }
    }
}

/// The unread body of a rejected request must not be read as a request, a risk of any proxy that answers by itself.
#[test]
fn rejected_body_is_no_request() {
    if Side::Clients.excludes("another thread writes to the socket") {
        return;
    }
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    let body = smuggled.repeat((1 << 20) / smuggled.len());
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: h\r\n{KEY_A}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n{smuggled}",
        chunk(&body)
    );
    let user = || rules(vec![Rule::Body(BodyKey::User)]);
    for (spec, request) in [
        (keys(), post(CHAT, KEY_A, &body)),
        (keys(), chunked.clone()),
        // A megabyte, of which nothing was sent.
        (keys(), post(CHAT, KEY_A, &body)[..600].to_owned()),
        // Buffered, and not JSON.
        (user(), post(CHAT, "", &body)),
    ] {
        let server = server();
        let (proxy, _gate) = gated(&server, spec, &["a", "default"]);
        let mut client = proxy.connect();
        // The answer may arrive, and the connection be closed, before all of it is sent.
        let stream = client.stream().try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            use std::io::Write as _;
            let _ = (&stream).write_all(request.as_bytes());
        });
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 429"), "{head}");
        sending.join().unwrap();
        // The connection may be closed already.
        let _ = client.stream().shutdown(std::net::Shutdown::Write);
        let rest = client.rest();
        assert!(!rest.contains("HTTP/1.1"), "one answer: {rest}");
        eventually("it is over", || proxy.running.in_flight() == 0);
        assert_eq!(server.upstream.connections(), 0, "nothing went upstream");
        assert_eq!(proxy.seen().refused, [Refusal::Budget]);
    }
}

/// A buffered request was read completely: its connection stays open.
#[test]
fn buffered_request_keeps_its_connection() {
    let server = server();
    let (proxy, _gate) = gated(&server, rules(vec![Rule::Body(BodyKey::User)]), &["a"]);
    let mut client = proxy.connect();
    for (user, status) in [("a", "429"), ("b", "200"), ("a", "429"), ("c", "200")] {
        let (head, _) = exchange(&mut client, post(CHAT, "", &format!(r#"{{"user":"{user}"}}"#)));
        assert_eq!(&head[9..12], status, "{user}");
        assert!(!head.to_ascii_lowercase().contains("connection: close"), "{head}");
    }
    assert_eq!(server.bodies(), [r#"{"user":"b"}"#, r#"{"user":"c"}"#]);
    assert_eq!([&*record(&proxy).identity.tenant, &*record(&proxy).identity.tenant], ["b", "c"]);
}

#[test]
fn body_over_the_cap_has_the_default_tenant() {
    if Side::Clients.excludes("another thread writes to the socket") {
        return;
    }
    let body = format!(r#"{{"user":"a","prompt":"{}"}}"#, "x".repeat(9 << 20));
    for (refused, status) in [("a", "200"), ("default", "429")] {
        let server = server();
        let (proxy, _gate) = gated(&server, rules(vec![Rule::Body(BodyKey::User)]), &[refused]);
        let mut client = proxy.connect();
        let (stream, request) = (client.stream().try_clone().unwrap(), post(CHAT, "", &body));
        let sending = std::thread::spawn(move || {
            use std::io::Write as _;
            let _ = (&stream).write_all(request.as_bytes());
        });
        let head = client.head().unwrap();
        assert_eq!(&head[9..12], status, "{refused}");
        if status == "200" {
            assert!(server.bodies() == [body.clone()], "it passed whole");
            assert_eq!(&*record(&proxy).identity.tenant, "default");
        } else {
            assert_eq!(server.upstream.connections(), 0);
        }
        drop(client);
        sending.join().unwrap();
    }
}

/// A body that is buffered for the gate and edited for its usage is buffered once and forwarded correctly.
#[test]
fn buffered_request_is_edited() {
    let server = Server::streaming();
    let gate = Arc::new(Gate::default());
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        in_force(rules(vec![Rule::Body(BodyKey::User)]))(plan);
        plan.control.gate = Some(gate);
    });
    let body = r#"{"user":"a","stream":true}"#;
    let mut client = proxy.connect();
    exchange(&mut client, post(CHAT, "", body));
    let half = chunk(&body[..9]);
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{half}{}0\r\n\r\n",
        chunk(&body[9..])
    );
    exchange(&mut client, chunked);
    // And one that requests nothing.
    exchange(&mut client, post("/v1/messages", "", r#"{"user":"b"}"#));
    let edited = r#"{"user":"a","stream":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(server.bodies(), [edited, edited, r#"{"user":"b"}"#]);
    let tenants: Vec<String> = (0..3).map(|_| record(&proxy).identity.tenant.to_string()).collect();
    assert_eq!(tenants, ["a", "a", "b"]);
}

/// If the head names the tenant, the gate does not wait for the body, which names the end user.
#[test]
fn tenant_in_the_head_needs_no_body() {
    let (heard, said) = mpsc::channel();
    let server = Upstream::start(move |peer, _| {
        peer.head();
        heard.send(peer.exactly(11)).unwrap();
        peer.exactly(2);
        answer(peer, "{}");
        peer.head();
    });
    let spec = Spec { end_user: vec![EndUser::Body(BodyKey::User)], plain_end_users: true, ..keys() };
    let proxy = Proxy::with(server.address, |plan| {
        in_force(spec)(plan);
        plan.control.gate = Some(Arc::default());
    });
    let mut client = proxy.connect();
    let whole = post(CHAT, KEY_A, r#"{"user":"ab"}"#);
    let (first, second) = whole.split_at(whole.len() - 2);
    client.send(first);
    assert_eq!(said.recv().unwrap(), br#"{"user":"ab"#);
    exchange(&mut client, second);
    let identity = record(&proxy).identity;
    assert_eq!((&*identity.tenant, identity.consumer.as_deref()), ("a", Some("ab")));
}

#[test]
fn client_leaving_during_buffering_reaches_no_server() {
    let server = server();
    let (proxy, _gate) = gated(&server, rules(vec![Rule::Body(BodyKey::User)]), &[]);
    let whole = post(CHAT, "", r#"{"user":"a"}"#);
    let mut client = proxy.connect();
    client.send(&whole[..whole.len() - 4]);
    eventually("the request began", || proxy.seen().seated == 1);
    drop(client);
    let begun = now();
    eventually("it is over", || proxy.seen().seated == 0 && proxy.running.in_flight() == 0);
    assert!(begun.elapsed() < PROMPT);
    assert_eq!(server.bodies(), [""; 0]);
    let record = record(&proxy);
    assert_eq!((record.ending, &*record.identity.tenant), (Ending::ClientAbort, "default"));
}

#[test]
fn rejected_request_gets_no_100_continue() {
    let server = server();
    let (proxy, _gate) = gated(&server, keys(), &["a"]);
    let mut client = proxy.connect();
    client.send(format!(
        "POST {CHAT} HTTP/1.1\r\nHost: h\r\n{KEY_A}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    ));
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
}

#[test]
fn rejected_stream_keeps_its_http2_connection() {
    let server = server();
    let (proxy, _gate) = gated(&server, keys(), &["a"]);
    let address = proxy.address();
    run(async move {
        let mut client = connect(address).await;
        for (key, status) in [("key-a", 429), ("key-b", 200), ("key-a", 429), ("key-b", 200)] {
            let request = Request::post(format!("http://{address}{CHAT}"))
                .header("x-api-key", key)
                .body(Full::new(Bytes::from("x".repeat(100_000))))
                .unwrap();
            let response = client.send_request(request).await.unwrap();
            assert_eq!(response.status(), status, "{key}");
            assert_eq!(response.headers().contains_key("retry-after"), status == 429);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body.windows(15).any(|part| part == b"budget_exceeded"), status == 429);
        }
    });
    assert_eq!(server.bodies().len(), 2);
    assert_eq!(proxy.seen().refused, [Refusal::Budget; 2]);
}
