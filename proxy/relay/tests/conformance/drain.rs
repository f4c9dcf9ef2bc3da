//! Shutdown: which requests are still served, which may finish, and which are cut.

use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use super::Proxy;
use crate::support::{DEADLINE, Upstream, eventually, upstream_body};

crate::support::wires::table! {
    (all):
        unfinished_stream_is_cut_after_the_grace,
        second_signal_stops_at_once,
        stream_cut_by_the_drain_ends_locally;
    (all, slow):
        stream_may_finish_within_the_grace;
    (http1_clients, "an HTTP/2 client learns of the drain by GOAWAY"):
        kept_connection_gets_one_more_response_after_the_listener_closed,
        new_connections_are_served_during_the_delay,
        response_during_the_drain_closes_its_connection;
    (main):
        idle_upstream_connection_is_closed_while_a_stream_finishes;
    (http1_clients, slow, "an HTTP/2 client learns of the drain by GOAWAY"):
        kept_connection_without_a_request_closes_a_second_after_the_listener;
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

/// A server whose streams end on a signal.
fn streaming() -> (Upstream, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        if wait.lock().unwrap().recv().is_ok() {
            peer.try_send("3\r\ntwo\r\n0\r\n\r\n");
        }
        peer.head();
    });
    (upstream, go)
}

fn stream_may_finish_within_the_grace() {
    let (upstream, go) = streaming();
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    let mut idle = proxy.connect();
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    client.until("one\r\n");
    proxy.running.drain();
    eventually("the listener closes", || TcpStream::connect(address).is_err());
    // The idle connection is closed.
    assert_eq!(idle.rest(), "");
    go.send(()).unwrap();
    assert_eq!(client.rest(), "3\r\ntwo\r\n0\r\n\r\n");
    proxy.running.join();
    assert_eq!(proxy.running.in_flight(), 0);
}

/// No further request will use it.
fn idle_upstream_connection_is_closed_while_a_stream_finishes() {
    let (go, wait) = mpsc::channel::<()>();
    let (heard, said) = mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        let head = peer.head().unwrap();
        let body = upstream_body(peer, &head);
        if body == b"s" {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
            wait.lock().unwrap().recv_timeout(DEADLINE).unwrap();
            peer.try_send("0\r\n\r\n");
            return;
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert!(peer.head().is_none());
        heard.send(()).unwrap();
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.pool_idle = Duration::from_secs(60));
    let post = |body: &str| format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n{body}");
    let (mut streaming, mut other) = (proxy.connect(), proxy.connect());
    streaming.send(post("s"));
    streaming.head();
    streaming.until("one\r\n");
    other.send(post("x"));
    other.head();
    other.exactly(2);
    eventually("the request has ended", || proxy.running.in_flight() == 1);
    proxy.running.drain();
    said.recv_timeout(DEADLINE).unwrap();
    go.send(()).unwrap();
    assert_eq!(streaming.rest(), "0\r\n\r\n");
}

fn new_connections_are_served_during_the_delay() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    // Long enough for seven requests on a busy machine.
    let proxy = Proxy::with(upstream.address, |plan| plan.drain_delay = Duration::from_secs(3));
    let mut pooled = proxy.connect();
    pooled.send(GET);
    let head = pooled.head().unwrap().to_lowercase();
    assert!(!head.contains("connection"), "{head}");
    pooled.exactly(2);
    proxy.running.drain();
    pooled.send(GET);
    assert!(pooled.head().unwrap().to_lowercase().contains("connection: close"));
    assert_eq!(pooled.rest(), "ok");
    for _ in 0..5 {
        let mut client = proxy.connect();
        client.send(GET);
        let head = client.head().unwrap().to_lowercase();
        assert!(head.starts_with("http/1.1 200") && head.contains("connection: close"), "{head}");
        assert_eq!(client.rest(), "ok", "and it is closed");
    }
    let address = proxy.listener();
    eventually("the listener closes", || TcpStream::connect(address).is_err());
    proxy.running.join();
}

fn unfinished_stream_is_cut_after_the_grace() {
    let (upstream, _go) = streaming();
    let proxy = Proxy::with(upstream.address, |plan| plan.drain_grace = Duration::from_millis(300));
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    client.until("one\r\n");
    let since = crate::support::now();
    proxy.running.drain();
    assert_eq!(client.rest(), "");
    let after = crate::support::now().duration_since(since);
    assert!(after >= Duration::from_millis(250) && after < Duration::from_secs(3), "{after:?}");
    proxy.running.join();
    assert_eq!(proxy.running.in_flight(), 0);
}

fn second_signal_stops_at_once() {
    let (upstream, _go) = streaming();
    let proxy = Proxy::with(upstream.address, |plan| plan.drain_delay = Duration::from_secs(60));
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    client.until("one\r\n");
    proxy.running.drain();
    proxy.running.stop_now();
    assert_eq!(client.rest(), "");
    proxy.running.join();
}

/// A client that uses its connections again cannot know of the drain before its next response.
fn kept_connection_gets_one_more_response_after_the_listener_closed() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    client.exactly(2);
    let address = proxy.listener();
    proxy.running.drain();
    eventually("the listener closes", || TcpStream::connect(address).is_err());
    client.send(GET);
    assert!(client.head().unwrap().to_lowercase().contains("connection: close"));
    assert_eq!(client.rest(), "ok");
    proxy.running.join();
}

fn kept_connection_without_a_request_closes_a_second_after_the_listener() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let mut times = (0..5).map(|_| {
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send(GET);
        client.head();
        client.exactly(2);
        let since = crate::support::now();
        proxy.running.drain();
        client.closed_after(since)
    });
    let is_exact = |after: Duration| after >= Duration::from_secs(1) && after < Duration::from_millis(1300);
    assert!(times.any(is_exact), "it closed late in 5 tries");
}

fn response_during_the_drain_closes_its_connection() {
    let (upstream, go) = Upstream::answering_on_signal("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(GET);
    eventually("the request is in flight", || proxy.running.in_flight() == 1);
    let address = proxy.listener();
    proxy.running.drain();
    eventually("the listener closes", || TcpStream::connect(address).is_err());
    go.send(()).unwrap();
    assert!(client.head().unwrap().to_lowercase().contains("connection: close"));
    assert_eq!(client.rest(), "ok");
    proxy.running.join();
}

fn stream_cut_by_the_drain_ends_locally() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.exactly(2);
        peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        let frame = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        peer.send(format!("{:x}\r\n{frame}\r\n", frame.len()));
        peer.head();
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.drain_grace = Duration::from_millis(100));
    let mut client = proxy.connect();
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
    client.head();
    client.until("}}]}\n\n\r\n");
    proxy.running.drain();
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert_eq!((record.ending, record.tokens.output()), (meter::Ending::ProxyError, 1));
}
