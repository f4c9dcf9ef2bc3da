//! A slow client stops its upstream, and a slow upstream stops its client: nothing accumulates in the proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chance::Side;

use super::Proxy;
use crate::support::{Upstream, eventually};

crate::support::wires::table! {
    (all):
        client_that_does_not_read_stops_the_upstream,
        bytes_before_a_cut_reach_a_slow_client;
    (all, slow):
        upstream_that_does_not_read_stops_the_client;
}

/// More than all buffers between two sockets on this machine.
const WHOLE: usize = 64 << 20;

fn client_that_does_not_read_stops_the_upstream() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {WHOLE}\r\n\r\n"));
        let piece = vec![b'x'; 64 << 10];
        while counted.load(Ordering::SeqCst) < WHOLE && peer.try_send(&piece) {
            counted.fetch_add(piece.len(), Ordering::SeqCst);
        }
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    settles(&sent);
    assert!(sent.load(Ordering::SeqCst) < WHOLE / 2, "the upstream was never stopped");
    // All of it arrives once the client reads.
    let mut left = WHOLE;
    while left > 0 {
        let piece = client.exactly(left.min(1 << 20));
        assert!(piece.iter().all(|byte| *byte == b'x'));
        left -= piece.len();
    }
}

fn upstream_that_does_not_read_stops_the_client() {
    if Side::Upstreams.excludes("the server in front has buffers of its own") {
        return;
    }
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        std::thread::sleep(Duration::from_secs(30));
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {WHOLE}\r\n\r\n"));
    client.stream().set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = vec![b'x'; 64 << 10];
    let mut sent = 0;
    while sent < WHOLE && client.try_send(&piece) {
        sent += piece.len();
    }
    assert!(sent < WHOLE / 2, "the client was never stopped");
}

fn bytes_before_a_cut_reach_a_slow_client() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
        let mut numbers = (0_u32..).flat_map(|n| n.to_be_bytes());
        for _ in 0..64 {
            let piece: Vec<u8> = numbers.by_ref().take(64 << 10).collect();
            peer.send(piece);
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    client.head();
    std::thread::sleep(Duration::from_millis(200));
    let whole = client.exactly(64 * (64 << 10));
    for (n, four) in (0_u32..).zip(whole.chunks(4)) {
        assert_eq!(four, n.to_be_bytes());
    }
    assert_eq!(client.rest(), "", "and then it is truncated");
}

/// Waits until a count has been constant for a while.
fn settles(count: &AtomicUsize) {
    let mut last = (usize::MAX, 0);
    eventually("it settles", || {
        let now = count.load(Ordering::SeqCst);
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        now > 0 && last.1 > 200
    });
}
