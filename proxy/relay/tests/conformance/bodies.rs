//! Bodies of every framing are forwarded unchanged, in both directions.

use std::sync::mpsc;

use super::Proxy;
use crate::support::{Upstream, eventually, upstream_body};

crate::support::wires::table! {
    (all):
        body_with_content_length_is_forwarded,
        chunked_body_is_forwarded_slice_by_slice,
        bytes_after_the_last_request_cause_no_reset,
        heads_without_bodies_keep_their_length,
        uploads_of_either_framing_are_forwarded,
        large_upload_is_forwarded_whole,
        announced_and_requested_trailers_are_forwarded,
        upstream_failure_truncates_the_response,
        body_short_of_its_length_is_truncated,
        upstream_prefix_precedes_the_path,
        name_in_the_target_becomes_the_host,
        hop_by_hop_fields_are_removed;
    (http1_clients, "an HTTP/2 client sends its body at once"):
        expect_continue_is_answered_when_body_is_read;
    (http1_clients, "its client uses HTTP/1.0"):
        http10_client_gets_no_chunks;
}

fn body_with_content_length_is_forwarded() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(
        client.head().unwrap(),
        Proxy::spelled("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\n")
    );
    assert_eq!(client.exactly(5), b"hello");
}

fn chunked_body_is_forwarded_slice_by_slice() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.send("3\r\none\r\n");
        wait.lock().unwrap().recv().unwrap();
        peer.send("3\r\ntwo\r\n0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(
        client.head().unwrap(),
        Proxy::spelled("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    );
    // The first slice arrives before the second is sent (law 2).
    assert_eq!(client.until("one\r\n"), "3\r\none\r\n");
    go.send(()).unwrap();
    assert_eq!(client.until("0\r\n\r\n"), "3\r\ntwo\r\n0\r\n\r\n");
}

/// Closing with unread bytes causes a reset, which destroys what the client has not received.
fn bytes_after_the_last_request_cause_no_reset() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        wait.lock().unwrap().recv().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    eventually("the request is sent", || upstream.connections() == 1);
    client.send("GET /ignored HTTP/1.1\r\nHost: h\r\n\r\n");
    go.send(()).unwrap();
    client.head();
    assert_eq!(client.exactly(2), b"ok");
    client.ends_without_a_reset();
    assert_eq!(upstream.connections(), 1);
}

fn http10_client_gets_no_chunks() {
    let upstream =
        Upstream::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.0\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.0 200 OK\r\n"), "{head}");
    assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
    assert_eq!(client.rest(), "one");
}

fn heads_without_bodies_keep_their_length() {
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ] {
        let upstream = Upstream::answering(answer);
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        for _ in 0..2 {
            client.send(format!("{method} /x HTTP/1.1\r\nHost: h\r\n\r\n"));
            assert_eq!(client.head().unwrap(), Proxy::spelled(answer));
        }
        assert_eq!(
            upstream.connections(),
            Proxy::connections_for(2),
            "the connection stays open after {answer:?}"
        );
    }
}

fn uploads_of_either_framing_are_forwarded() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            let body = upstream_body(peer, &head);
            heard.send((head, body)).unwrap();
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-LENGTH: 5\r\n\r\nhello");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    let (head, body) = said.recv().unwrap();
    assert_eq!(head, Proxy::spelled("POST /x HTTP/1.1\r\nHost: h\r\nContent-LENGTH: 5\r\n\r\n"));
    assert_eq!(body, b"hello");

    client.send(
        "POST /x HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    );
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    let (head, body) = said.recv().unwrap();
    assert_eq!(head, Proxy::spelled("POST /x HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n"));
    assert_eq!(body, b"hello");
}

fn large_upload_is_forwarded_whole() {
    let upstream = Upstream::start(|peer, _| {
        let head = peer.head().unwrap();
        let body = upstream_body(peer, &head);
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        let answer = format!("{} {sum}", body.len());
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len()));
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    client.send(format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    client.head();
    let expected = format!("{} {sum}", body.len());
    assert_eq!(client.exactly(expected.len()), expected.as_bytes());
}

fn announced_and_requested_trailers_are_forwarded() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: v\r\n\r\n",
    );
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    client.head();
    assert_eq!(client.until("\r\n\r\n").to_lowercase(), "2\r\nok\r\n0\r\nx-t: v\r\n\r\n");
    // The connection stays open.
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    assert_eq!(client.until("0\r\n\r\n"), "2\r\nok\r\n0\r\n\r\n");
}

fn expect_continue_is_answered_when_body_is_read() {
    let upstream = Upstream::start(|peer, _| {
        let head = peer.head().unwrap();
        assert!(!head.to_lowercase().contains("expect"), "{head}");
        let body = upstream_body(peer, &head);
        assert_eq!(body, b"hello");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head().unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));

    let mut refused = proxy.connect();
    refused.send("POST /x HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert!(refused.head().unwrap().starts_with("HTTP/1.1 400"));
}

fn upstream_failure_truncates_the_response() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
    client.head();
    assert_eq!(client.rest(), "3\r\none\r\n", "the received bytes without a last chunk");
}

fn body_short_of_its_length_is_truncated() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive!");
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(client.head().unwrap().to_lowercase().contains("content-length: 10"));
    assert_eq!(client.rest(), "five!");
}

fn upstream_prefix_precedes_the_path() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            heard.send(head.lines().next().unwrap().to_owned()).unwrap();
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.upstreams[0].prefix = "/mounted".into());
    let mut client = proxy.connect();
    for (target, expected) in [
        ("/a/b?c=d%20e", "/mounted/a/b?c=d%20e"),
        ("/", "/mounted/"),
        ("http://elsewhere:1/x?y", "/mounted/x?y"),
        ("http://elsewhere?y", "/mounted/?y"),
    ] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"), "{target}");
        assert_eq!(said.recv().unwrap(), format!("GET {expected} HTTP/1.1"));
    }
}

fn name_in_the_target_becomes_the_host() {
    let (upstream, said) = Upstream::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET http://named:81/x HTTP/1.1\r\nAccept: */*\r\nHost: other\r\n\r\n");
    client.head();
    assert_eq!(
        said.recv().unwrap(),
        Proxy::spelled("GET /x HTTP/1.1\r\nAccept: */*\r\nHost: named:81\r\n\r\n")
    );
    client.send("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    assert_eq!(said.recv().unwrap(), Proxy::spelled("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"));
}

fn hop_by_hop_fields_are_removed() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        heard.send(peer.head().unwrap()).unwrap();
        peer.send("HTTP/1.1 200 OK\r\nConnection: keep-alive, x-mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nX: y\r\nContent-Length: 0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, X-Own, Host\r\nX-Own: 1\r\nKeep-Alive: 3\r\nProxy-Connection: x\r\nA: b\r\n\r\n");
    assert_eq!(
        client.head().unwrap(),
        Proxy::spelled("HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 0\r\n\r\n")
    );
    assert_eq!(said.recv().unwrap(), Proxy::spelled("GET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"));
}
