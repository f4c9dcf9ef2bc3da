//! A request body and its response move at the same time, wherever their bytes are cut.

use std::sync::mpsc;

use super::Proxy;
use crate::support::{Upstream, eventually, upstream_body};

crate::support::wires::table! {
    (all):
        answer_and_upload_move_at_the_same_time,
        upload_waits_for_its_server;
    (http1, "only HTTP/1.1 has chunks"):
        chunks_that_wait_for_a_connection_are_joined;
    (http1_clients, "interim responses reach HTTP/1.1 clients only"):
        messages_may_be_cut_anywhere;
}

/// A server may answer while it reads: each side gets every slice before the other sends its next one.
fn answer_and_upload_move_at_the_same_time() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
        for piece in ["one", "two"] {
            peer.until(piece);
            peer.send(piece);
        }
        peer.until("0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.head();
    for piece in ["one", "two"] {
        client.send(format!("3\r\n{piece}\r\n"));
        assert_eq!(client.exactly(3), piece.as_bytes());
    }
    client.send("0\r\n\r\n");
    eventually("it has ended", || proxy.running.in_flight() == 0);
}

/// A server that reads nothing stops its client, and takes the rest once it reads.
fn upload_waits_for_its_server() {
    const BYTES: usize = 16 << 20;
    const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let upstream = Upstream::start(move |peer, _| {
        let head = peer.head().unwrap();
        if head.starts_with("GET") {
            return peer.send(NO_CONTENT);
        }
        wait.lock().unwrap().recv().unwrap();
        assert_eq!(upstream_body(peer, &head).len(), BYTES);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {BYTES}\r\n\r\n"));
    let mut other = proxy.connect();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| client.send(vec![b'x'; BYTES]));
        // It does not delay other requests.
        other.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(other.head().unwrap().starts_with("HTTP/1.1 204"));
        assert!(!sending.is_finished(), "the sockets hold less than the body");
        go.send(()).unwrap();
        sending.join().unwrap();
    });
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
}

/// What is read while there is no place at the server takes the memory of its bytes, however many chunks they are.
fn chunks_that_wait_for_a_connection_are_joined() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let (heard, line) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET") {
                wait.lock().unwrap().recv().unwrap();
            } else {
                heard.send(peer.until("\r\n")).unwrap();
                peer.until("0\r\n\r\n");
            }
            peer.send(OK);
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = 1);
    let (mut first, mut second) = (proxy.connect(), proxy.connect());
    first.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    eventually("its place is taken", || proxy.running.reader()().upstream_connections[0].taken == 1);
    let chunks = "1\r\na\r\n".repeat(1000);
    second
        .send(format!("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"));
    eventually("both are in flight", || proxy.running.in_flight() == 2);
    go.send(()).unwrap();
    assert!(second.head().unwrap().starts_with("HTTP/1.1 200"));
    let size = usize::from_str_radix(line.recv().unwrap().trim_end(), 16).unwrap();
    assert!(size > 1, "the first of {size}");
}

/// A request and its response are the same messages wherever they are cut, even with bytes behind them.
fn messages_may_be_cut_anywhere() {
    let request = "POST /x HTTP/1.1\r\nHost: h\r\nTrailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nX-A: b\r\n\r\n";
    let answer = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-B\r\n\
                  Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n4\r\nody!\r\n0\r\nX-B: c\r\n\r\n";
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, number| {
        let mut at = number % answer.len();
        while peer.head().is_some() {
            heard.send(peer.until("\r\n\r\n")).unwrap();
            peer.send(&answer[..at]);
            std::thread::yield_now();
            peer.send(&answer[at..]);
            at = (at + 1) % answer.len();
        }
    });
    let proxy = Proxy::new(upstream.address);
    let payload = |chunks: &str| chunks.split("\r\n").skip(1).step_by(2).collect::<String>();
    for at in 0..request.len() {
        let mut client = proxy.connect();
        let next = "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n";
        client.send(&request[..at]);
        std::thread::yield_now();
        client.send(format!("{}{next}", &request[at..]));
        let sent = said.recv().unwrap();
        assert!(payload(&sent).starts_with("hello") && sent.ends_with("0\r\nx-a: b\r\n\r\n"), "{at}: {sent}");
        assert_eq!(client.head().unwrap(), "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200 OK\r\n"), "{at}");
        let answered = client.until("0\r\n\r\n");
        assert!(payload(&answered).starts_with("body!"), "{at}: {answered}");
        assert!(client.head().unwrap().starts_with("HTTP/1.1 400"), "{at}: the next request");
    }
}
