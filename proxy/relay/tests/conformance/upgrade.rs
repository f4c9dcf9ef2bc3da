//! A connection that switches protocols becomes a tunnel; nothing else does.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use meter::Ending;
use relay::{Gate, Passthrough};

use super::Proxy;
use crate::support::{Upstream, eventually};

crate::support::wires::table! {
    (http1_clients, "HTTP/2 clients cannot switch protocols"):
        bytes_pass_both_ways_after_a_101,
        bytes_sent_with_the_request_all_pass,
        tunnel_ends_with_its_client,
        websocket_with_a_body_or_another_method_is_not_asked_for,
        cleartext_http2_upgrade_is_ignored,
        metered_request_opens_no_tunnel,
        tunnel_at_an_unknown_path_is_counted_as_one,
        rejected_upgrade_is_an_ordinary_answer,
        switch_before_the_end_of_a_request_is_rejected,
        switch_has_no_framing;
    (http1_clients, slow, "HTTP/2 clients cannot switch protocols"):
        leaving_client_is_noticed_while_upstream_reads_nothing;
}

const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-X: y\r\n\r\n";

fn bytes_pass_both_ways_after_a_101() {
    let upstream = Upstream::start(|peer, _| {
        let head = peer.head().unwrap();
        assert_eq!(
            head,
            "GET /v1/tunnel HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
        // Bytes after the 101 in the same packet belong to the tunnel.
        peer.send(format!("{SWITCH}first"));
        assert_eq!(peer.exactly(5), b"early");
        for _ in 0..3 {
            let said = peer.exactly(4);
            peer.send(said);
        }
        assert_eq!(peer.rest(), "bye");
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /v1/tunnel HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nearly");
    assert_eq!(client.head().unwrap(), SWITCH);
    assert_eq!(client.exactly(5), b"first");
    for word in ["ping", "pong", "ding"] {
        client.send(word);
        assert_eq!(client.exactly(4), word.as_bytes());
    }
    assert_eq!(proxy.running.in_flight(), 1);
    client.send("bye");
    client.half_close();
    assert_eq!(client.rest(), "");
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
    assert_eq!(proxy.seen().passed, [Passthrough::Upgrade]);
}

/// The first read takes the request and what is behind it, of which later reads take the rest.
fn bytes_sent_with_the_request_all_pass() {
    let bytes: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
    for len in [1, 8_000, 9_000, 15_000, 16_384, bytes.len()] {
        let expected = bytes[..len].to_vec();
        let upstream = Upstream::start(move |peer, _| {
            peer.head().unwrap();
            peer.send(SWITCH);
            assert!(peer.exactly(expected.len()) == expected, "of {len} bytes others arrived");
            peer.send("all");
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        let head = b"GET /v1/tunnel HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        client.send([head, &bytes[..len]].concat());
        assert_eq!(client.head().unwrap(), SWITCH, "{len}");
        assert_eq!(client.exactly(3), b"all", "{len}");
    }
}

fn websocket_with_a_body_or_another_method_is_not_asked_for() {
    for head in [
        "GET /v1/realtime HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n",
        "GET /v1/realtime HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
        "POST /v1/responses HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n",
    ] {
        let upstream = Upstream::start(|peer, _| {
            assert!(!peer.head().unwrap().to_lowercase().contains("upgrade"));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            peer.rest();
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send(format!("{head}Connection: Upgrade\r\nUpgrade: WebSocket/13\r\n\r\n"));
        client.send(if head.contains("chunked") { "2\r\n{}\r\n0\r\n\r\n" } else { "{}" });
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"), "{head}");
    }
}

/// The rest of the body would be bytes of the other protocol.
fn switch_before_the_end_of_a_request_is_rejected() {
    let upstream = Upstream::start(|peer, _| {
        peer.head().unwrap();
        peer.send(SWITCH);
        peer.rest();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /v1/tunnel HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: other\r\nContent-Length: 10\r\n\r\nhello");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 502 "));
    assert!(client.rest().contains("upstream_invalid"));
    assert_eq!(upstream.connections(), 1);
}

fn switch_has_no_framing() {
    let upstream = Upstream::start(|peer, _| {
        let head = peer.head().unwrap();
        assert_eq!(crate::support::upstream_body(peer, &head), b"hello");
        peer.send(SWITCH.replace("Sec-X", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\nSec-X"));
        let early = peer.exactly(5);
        peer.send(early);
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /v1/tunnel HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: other\r\nContent-Length: 5\r\n\r\nhelloearly");
    assert_eq!(client.head().unwrap(), SWITCH);
    assert_eq!(client.exactly(5), b"early");
}

fn leaving_client_is_noticed_while_upstream_reads_nothing() {
    let (ended, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        peer.head().unwrap();
        peer.send(SWITCH);
        // Ends with the test.
        let _ = wait.lock().unwrap().recv();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /v1/tunnel HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(client.head().unwrap(), SWITCH);
    client.stream().set_write_timeout(Some(FULL)).unwrap();
    while client.try_send([0; 1 << 16]) {}
    assert_eq!(proxy.running.in_flight(), 1);
    // A reset: its kernel has nothing left to send.
    socket2::SockRef::from(client.stream()).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
    drop(ended);
}

/// The time after which all sockets on the way count as full.
const FULL: Duration = Duration::from_millis(500);

fn rejected_upgrade_is_an_ordinary_answer() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
        client.exactly(2);
    }
    assert_eq!(proxy.seen().passed, [Passthrough::Path, Passthrough::Path]);
}

fn cleartext_http2_upgrade_is_ignored() {
    let (upstream, said) = Upstream::recording("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    // Hypercorn removes all that Python takes for blanks.
    for upgrade in
        [&b"h2c"[..], b"H2C", b"h2c\xa0", b"\x85h2c", b"h2c/1", b"foo, h2c", b"foo\r\nUpgrade: h2c"]
    {
        let head = b"GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ";
        client.send([head, upgrade, b"\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n"].concat());
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
        assert_eq!(said.recv().unwrap(), Proxy::spelled("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"), "{upgrade:?}");
    }
}

/// At a path that is metered, no protocol is requested, so the server may not switch.
fn metered_request_opens_no_tunnel() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        heard.send(peer.head().unwrap()).unwrap();
        peer.send(SWITCH);
        peer.rest();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    let (target, rest) = ("POST /v1/completions HTTP/1.1\r\nHost: h\r\n", "Content-Length: 2\r\n\r\n");
    client.send(format!("{target}Connection: upgrade\r\nUpgrade: foo\r\n{rest}{{}}"));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 502"));
    assert_eq!(said.recv().unwrap(), Proxy::spelled(&format!("{target}{rest}")));
    assert_eq!(crate::usage::record(&proxy).ending, Ending::ProxyError);
}

/// A request to an unknown path may be metered, but not as a tunnel. With a budget, its body may show a known dialect.
fn tunnel_at_an_unknown_path_is_counted_as_one() {
    for (has_budget, body) in [(false, "{}"), (true, "{}"), (true, r#"{"model":"m","messages":[]}"#)] {
        let upstream = Upstream::start(|peer, _| {
            let head = peer.head().unwrap();
            crate::support::upstream_body(peer, &head);
            peer.send(SWITCH);
            peer.rest();
        });
        let proxy = Proxy::with(upstream.address, |plan| {
            plan.control.gate = has_budget.then(|| Arc::new(Gate::default()));
        });
        let mut client = proxy.connect();
        let head = "POST /x HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: other\r\n";
        client.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 101"));
        let passed = proxy.seen().passed.clone();
        let seated = proxy.seen().seated;
        assert_eq!((&passed[..], seated), (&[Passthrough::Upgrade][..], 0), "{has_budget} {body}");
        drop(client);
        eventually("the tunnel ends", || proxy.running.in_flight() == 0);
        assert!(proxy.inbox.recv_timeout(Duration::ZERO).is_err(), "there is no record");
    }
}

fn tunnel_ends_with_its_client() {
    let (sender, closed) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send(SWITCH);
        sender.send(()).unwrap();
        peer.closed_after(crate::support::now());
        sender.send(()).unwrap();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    client.head();
    closed.recv().unwrap();
    client.reset();
    closed.recv().unwrap();
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
}
