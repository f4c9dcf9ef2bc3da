//! Rejected requests, of which nothing reaches an upstream.

use std::time::Duration;

use relay::{Passthrough, Refusal};

use super::Proxy;
use crate::support::{Upstream, eventually};

crate::support::wires::table! {
    (all):
        unmetered_requests_are_counted;
    (http1_clients, "these requests have no form in HTTP/2"):
        ambiguous_requests_never_reach_the_upstream,
        rejected_body_is_not_read_as_a_request,
        misframed_body_is_rejected,
        oversized_heads_are_answered_and_cut,
        rejected_request_to_head_has_no_body;
    (http1_clients, "an HTTP/2 connection stays open"):
        unread_body_of_long_target_causes_no_reset;
    (http1_clients, slow, "these requests have no form in HTTP/2"):
        slow_head_is_cut;
}

fn ambiguous_requests_never_reach_the_upstream() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    let posts = [
        ("Transfer-Encoding: gzip, chunked", 400),
        ("Transfer-Encoding: chunked, chunked", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked, identity", 400),
        ("Transfer-Encoding: chunked,", 400),
        ("Transfer-Encoding:", 400),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: identity", 501),
        ("Transfer-Encoding : chunked", 400),
        ("Transfer-Encoding\t: chunked", 400),
        ("Transfer-Encoding: chunked\nX: y", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Content-Length: x\r\nTransfer-Encoding: chunked", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: gzip", 400),
        ("Content-Length: 9223372036854775808", 400),
        ("Content-Length: 18446744073709551616", 400),
        ("Content-Length: -1", 400),
        ("Content-Length: +1", 400),
        ("Content-Length: 0x1", 400),
        ("Content-Length:", 400),
        ("Content-Length: 1, 1", 400),
        ("Content-Length: 1\r\nContent-Length: 1", 400),
        ("Content-Length: 1\r\nContent-Length: 2", 400),
    ]
    .map(|(fields, status)| (format!("POST /x HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n0\r\n\r\n"), status));
    let others = [
        ("POST /x HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost:\r\n\r\n", 400),
        ("GET http://h@evil/x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET ftp://h/x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /x#y HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /<x> HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /x y HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET  /x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /x\r\n\r\n", 400),
        ("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", 405),
        ("GET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\n A: b\r\nHost: h\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: h\r\nA: b\nC: d\r\n\r\n", 400),
        ("GET /x HTTP/1.1\nHost: h\n\n", 400),
        ("GET /x HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", 400),
        ("\r\n\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /x HTTP/2.5\r\nHost: h\r\n\r\n", 505),
        ("GET /x HTTP/1.2\r\nHost: h\r\n\r\n", 505),
        ("G@T /x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ]
    .map(|(request, status)| (request.to_owned(), status));
    let rows = [&posts[..], &others[..]].concat();
    for (request, status) in &rows {
        let mut client = proxy.connect();
        // Nothing behind an error is a request.
        client.send(format!("{request}GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"));
        let head = client.head().unwrap_or_default();
        assert!(head[8..].starts_with(&format!(" {status} ")), "{request:?} -> {head:?}");
        let head = head.to_lowercase();
        assert!(head.contains("connection: close"), "{request:?} -> {head:?}");
        assert!(head.contains("content-type: application/json"), "{request:?} -> {head:?}");
        let body = client.rest();
        let is_one = body.starts_with(r#"{"error":{"message":"tokenmeter "#) && body.ends_with("}}");
        assert!(is_one, "{request:?} -> {body}");
    }
    assert_eq!(upstream.connections(), 0);
    eventually("each is counted", || proxy.seen().refused.len() == rows.len());
}

fn rejected_request_to_head_has_no_body() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    for fields in ["Host: h\r\nContent-Length: x", ""] {
        let mut client = proxy.connect();
        client.send(format!("HEAD /x HTTP/1.1\r\n{fields}\r\n\r\n"));
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        assert_eq!(client.rest(), "", "{fields}");
    }
}

fn rejected_body_is_not_read_as_a_request() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n".repeat(20_000);
    client.send(format!("POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n", smuggled.len()));
    client.try_send(&smuggled);
    let answer = client.rest();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(upstream.connections(), 0);
}

fn unread_body_of_long_target_causes_no_reset() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::with(upstream.address, |plan| plan.upstreams[0].prefix = "/p".repeat(500).into());
    let mut client = proxy.connect();
    let (target, body) = ("/x".repeat(32_300), "x".repeat(500_000));
    client.send(format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 414 "), "{head}");
    client.until("}}");
    client.ends_without_a_reset();
    assert_eq!(upstream.connections(), 0);
}

fn misframed_body_is_rejected() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.closed_after(crate::support::now());
    });
    let proxy = Proxy::new(upstream.address);
    let rows = [
        "zz\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "3;a=\"b\r\nabc\r\n0\r\n\r\n",
        "3;a\n;b\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "00000000000003\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: y\n\r\n",
        "3\r\nabc\r\n0\r\nX : y\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n",
    ];
    for body in rows {
        let mut client = proxy.connect();
        client.send("POST /v1/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(body);
        let answer = client.rest();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?} -> {answer}");
        assert!(answer.contains("invalid_framing"), "{body:?} -> {answer}");
    }
    assert_eq!(proxy.seen().refused, rows.map(|_| Refusal::Framing));
}

fn oversized_heads_are_answered_and_cut() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    // More than the limit and one read.
    let long = "a".repeat(90_000);
    let fields = "a: b\r\n".repeat(relay::limits::HEAD_FIELDS);
    for (request, status) in [
        (format!("GET /x HTTP/1.1\r\nHost: h\r\nA: {long}\r\n\r\n"), "431"),
        (format!("GET /x HTTP/1.1\r\nHost: h\r\n{fields}\r\n"), "431"),
        // Without an end.
        (format!("GET /x HTTP/1.1\r\nHost: h\r\nA: {long}"), "431"),
        (format!("GET /{long}"), "414"),
        (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", &long[..65_400]), "200"),
    ] {
        let mut client = proxy.connect();
        client.try_send(request);
        let head = client.head().unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
}

fn unmetered_requests_are_counted() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for request in ["GET /v1/models", "GET /v1/chat/completions", "POST /tokenize"] {
        client.send(format!("{request} HTTP/1.1\r\nHost: h\r\n\r\n"));
        client.head();
    }
    let passed = proxy.seen().passed.clone();
    assert_eq!(passed, [Passthrough::Path, Passthrough::Method, Passthrough::Path]);
}

fn slow_head_is_cut() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::with(upstream.address, |plan| plan.head_timeout = Duration::from_millis(200));
    for begun in ["G", "GET /x HTTP/1.1\r\nHo", "PRI * HTTP"] {
        let mut client = proxy.connect();
        let since = crate::support::now();
        client.send(begun);
        let after = client.closed_after(since);
        assert!(after >= Duration::from_millis(150) && after < Duration::from_secs(2), "{after:?}");
    }
    // Also the second head on a connection; waiting for a next request is not slow.
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    std::thread::sleep(Duration::from_millis(400));
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    client.send("GET /x HT");
    let after = client.closed_after(crate::support::now());
    assert!(after < Duration::from_secs(2), "{after:?}");
    // Also a head that began behind the request before it.
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\nGET /x HT");
    client.head();
    let after = client.closed_after(crate::support::now());
    assert!(after < Duration::from_secs(2), "{after:?}");
}
