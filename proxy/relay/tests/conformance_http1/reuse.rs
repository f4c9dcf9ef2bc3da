//! Connections are kept on both sides, and a closed one never costs the client a request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use relay::Refusal;

use super::Proxy;
use crate::support::{Upstream, eventually, upstream_body};

crate::support::wires::table! {
    (http1_upstreams, "HTTP/2 shares connections"):
        one_upstream_connection_serves_many_clients_in_turn,
        connection_closed_while_idle_is_not_used,
        server_closing_after_streams_costs_no_request,
        connection_is_reused_after_its_rest,
        server_that_keeps_connections_needs_no_long_rest,
        sent_request_is_never_sent_twice,
        connection_closed_by_its_server_is_not_reused,
        idle_connections_are_swept,
        pool_of_size_zero_keeps_no_connection,
        surplus_of_a_response_reaches_no_client;
    (http1_upstreams, slow, "HTTP/2 shares connections"):
        server_that_closes_idle_connections_does_not_close_after_streams;
    (http1, "only HTTP/1.1 has pipelines"):
        pipelined_requests_are_answered_in_order;
    (http1, "only HTTP/1.1 closes connections"):
        early_answer_closes_both_connections;
    (http1, "heads of HTTP/2 are frames"):
        requests_are_served_however_they_are_cut;
    (http1, "HTTP/2 clients cannot switch protocols"):
        connection_with_a_refused_upgrade_is_not_reused;
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn one_upstream_connection_serves_many_clients_in_turn() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::new(upstream.address);
    for _ in 0..3 {
        let mut client = proxy.connect();
        for _ in 0..3 {
            client.send(GET);
            client.head();
            client.exactly(2);
        }
    }
    assert_eq!(upstream.connections(), 1);
}

fn pipelined_requests_are_answered_in_order() {
    let count = AtomicUsize::new(0);
    let upstream = Upstream::start(move |peer, _| {
        while peer.head().is_some() {
            let number = count.fetch_add(1, Ordering::SeqCst);
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}"));
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(GET.repeat(5));
    for number in 0..5 {
        client.head();
        assert_eq!(client.exactly(1), number.to_string().as_bytes());
    }
}

fn connection_closed_while_idle_is_not_used() {
    let (closed, known) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        let head = peer.head().unwrap();
        upstream_body(peer, &head);
        peer.send(OK);
        closed.send(()).unwrap();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for number in 1..=5 {
        client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
        client.exactly(2);
        known.recv().unwrap();
        // The close is in transit over loopback: the proxy sees it within the next request.
        eventually("closed", || upstream.connections() == number);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(proxy.seen().refused.is_empty());
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

fn server_closing_after_streams_costs_no_request() {
    let upstream = Upstream::start(|peer, _| {
        if peer.head().is_some() {
            peer.send(STREAM);
            // Like llama.cpp, it announced keep-alive, and closes a moment later.
            std::thread::sleep(Duration::from_millis(3));
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for number in 0..60 {
        client.send(GET);
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"), "request {number}");
        client.until("0\r\n\r\n");
    }
    assert!(proxy.seen().refused.is_empty());
}

fn connection_is_reused_after_its_rest() {
    let upstream = Upstream::answering(STREAM);
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send(GET);
        client.head();
        client.until("0\r\n\r\n");
    }
    assert_eq!(upstream.connections(), 2, "the first connection still rests");
    std::thread::sleep(Duration::from_millis(300));
    client.send(GET);
    client.head();
    client.until("0\r\n\r\n");
    assert_eq!(upstream.connections(), 2, "and then is used again");
}

fn server_that_keeps_connections_needs_no_long_rest() {
    let upstream = Upstream::answering(STREAM);
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    let mut stream = |rest_ms| {
        client.send(GET);
        client.head();
        client.until("0\r\n\r\n");
        std::thread::sleep(Duration::from_millis(rest_ms));
    };
    for _ in 0..3 {
        stream(300);
    }
    for _ in 0..5 {
        stream(50);
    }
    assert_eq!(upstream.connections(), 1);
}

fn server_that_closes_idle_connections_does_not_close_after_streams() {
    let (closed, known) = mpsc::channel();
    let upstream = Upstream::start(move |peer, number| {
        while peer.head().is_some() {
            peer.send(STREAM);
            if number == 0 {
                // Longer than a rest and a sweep.
                std::thread::sleep(Duration::from_millis(1600));
                closed.send(()).unwrap();
                return;
            }
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    let mut stream = || {
        client.send(GET);
        client.head();
        client.until("0\r\n\r\n");
    };
    stream();
    known.recv().unwrap();
    // The proxy has received the close.
    std::thread::sleep(Duration::from_millis(1100));
    stream();
    std::thread::sleep(Duration::from_millis(300));
    stream();
    assert_eq!(upstream.connections(), 2, "the second one is used again");
}

fn requests_are_served_however_they_are_cut() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    let long = format!("GET /x HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    for (text, cut) in
        [(GET, 0), (GET, 1), (GET, GET.len() - 1), (&long, 10_000), (&GET.repeat(3), GET.len() + 1)]
    {
        for piece in [&text[..cut], &text[cut..]] {
            // So that the proxy reads each piece alone.
            std::thread::sleep(Duration::from_millis(20));
            client.send(piece);
        }
        for _ in 0..text.matches("GET").count() {
            let head = client.head().expect("a response").to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 200") && !head.contains("connection:"), "{cut}: {head}");
            assert_eq!(client.exactly(2), b"ok");
        }
    }
    assert_eq!(proxy.seen().refused, []);
}

fn sent_request_is_never_sent_twice() {
    let served = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&served);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        counted.fetch_add(1, Ordering::SeqCst);
        peer.send(OK);
        // Accepts the next one and fails with it.
        if peer.head().is_some() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    client.exactly(2);
    client.send(GET);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 502"));
    assert!(client.until("}}").contains("upstream_broken"));
    assert_eq!(served.load(Ordering::SeqCst), 2);
    assert_eq!(proxy.seen().refused, [Refusal::UpstreamBroken]);
}

fn connection_closed_by_its_server_is_not_reused() {
    for (answer, why) in [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "the server closes"),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.0"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", "garbage follows"),
    ] {
        let upstream = Upstream::answering(answer);
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        for _ in 0..2 {
            client.send(GET);
            client.head();
            assert_eq!(client.exactly(2), b"ok");
        }
        assert_eq!(upstream.connections(), 2, "{why}");
    }
}

fn early_answer_closes_both_connections() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 2\r\n\r\nno");
        peer.closed_after(crate::support::now());
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 413"));
    client.exactly(2);
    // Bytes of the client after that are not a request.
    client.try_send(GET);
    assert_eq!(client.rest(), "");
    eventually("over", || proxy.running.in_flight() == 0);
    assert_eq!(upstream.connections(), 1);
}

/// Servers differ in whether a body or the bytes of another protocol follow such a request.
fn connection_with_a_refused_upgrade_is_not_reused() {
    for body in ["\r\n", "Content-Length: 2\r\n\r\n{}"] {
        let (heard, said) = mpsc::channel();
        let upstream = Upstream::start(move |peer, _| {
            while let Some(head) = peer.head() {
                upstream_body(peer, &head);
                heard.send(head.lines().next().unwrap().to_owned()).unwrap();
                peer.send(OK);
            }
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        // The bytes behind it are the next requests, and reach no server before the answer.
        client.send(format!("GET /x HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: other\r\n{body}"));
        client.send(GET.replace("/x", "/y").repeat(2));
        for target in ["/x", "/y", "/y"] {
            assert!(client.head().unwrap().starts_with("HTTP/1.1 200 "));
            assert_eq!(client.exactly(2), b"ok");
            assert_eq!(said.recv().unwrap(), format!("GET {target} HTTP/1.1"));
        }
        assert_eq!(upstream.connections(), 2);
    }
}

/// Bytes behind a response are not the beginning of another one, even if its client is another.
fn surplus_of_a_response_reaches_no_client() {
    let upstream = Upstream::start(move |peer, number| {
        let surplus = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen";
        while peer.head().is_some() {
            peer.send(format!("{OK}{}", if number == 0 { surplus } else { "" }));
        }
    });
    let proxy = Proxy::new(upstream.address);
    for _ in 0..3 {
        let mut client = proxy.connect();
        client.send(GET);
        client.head();
        assert_eq!(client.exactly(2), b"ok");
        client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        client.head();
        assert_eq!(client.rest(), "ok");
    }
}

fn idle_connections_are_swept() {
    let (sender, closed) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send(OK);
        sender.send(peer.closed_after(crate::support::now())).unwrap();
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.pool_idle = Duration::from_millis(300));
    let mut client = proxy.connect();
    client.send(GET);
    client.head();
    let after = closed.recv().unwrap();
    assert!(after >= Duration::from_millis(250) && after < Duration::from_secs(3), "{after:?}");
}

fn pool_of_size_zero_keeps_no_connection() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::with(upstream.address, |plan| plan.pool_size = 0);
    let mut client = proxy.connect();
    for _ in 0..3 {
        client.send(GET);
        client.head();
        client.exactly(2);
    }
    assert_eq!(upstream.connections(), 3);
}
