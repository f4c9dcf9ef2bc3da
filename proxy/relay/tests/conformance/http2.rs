//! Clients that use HTTP/2 without TLS, with prior knowledge.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use chance::Side;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Request};
use meter::Ending;
use relay::Dropped;

use super::Proxy;
use super::shares::connect_from;
use crate::support::http2::{connect, run};
use crate::support::http2_server::{END_HEADERS, GOAWAY, HEADERS, SETTINGS};
use crate::support::{DEADLINE, PROMPT, Peer, Upstream, eventually, now, upstream_body};
use crate::tenants::{exchange, post};
use crate::usage::record;

crate::support::wires::table! {
    (http2_clients, "the clients of these tests use HTTP/2 themselves"):
        requests_become_http11_with_one_host,
        many_streams_share_a_connection,
        get_with_a_body_keeps_it,
        requests_have_at_most_100_fields,
        trailers_are_forwarded,
        upstream_failure_resets_the_stream,
        reset_stream_cancels_its_upstream_only,
        closed_connection_cancels_all_its_streams,
        slow_stream_stops_its_upstream,
        rejections_do_not_close_the_connection,
        drain_lets_streams_finish,
        idle_connection_is_no_slow_head;
    (cleartext, "the client sends frames without TLS"):
        drain_ends_a_connection_whose_client_does_not,
        request_of_a_connection_that_gave_its_place_never_begins;
}

fn get(address: SocketAddr, path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://{address}{path}")).body(Empty::new()).unwrap()
}

fn requests_become_http11_with_one_host() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            let body = upstream_body(peer, &head);
            heard.send((head, body)).unwrap();
            peer.send("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
        }
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let request = Request::post(format!("http://{address}/x?y"))
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .header("te", "trailers")
            .body(Full::new(Bytes::from_static(b"hello")))
            .unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers().len(), 1, "{:?}", response.headers());
        assert_eq!(response.headers()["x-a"], "b");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    });
    let (head, body) = said.recv().unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /x?y http/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
    assert!(head.contains("\r\ncookie: a=1; b=2\r\n"), "{head}");
    assert!(head.contains("\r\nte: trailers\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-length: 5\r\n"), "{head}");
    assert_eq!(body, b"hello");
}

/// Crumbs of a cookie are one field (RFC 9113 §8.2.3).
fn requests_have_at_most_100_fields() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        for (name, count, status) in [("x-a", 100, 200), ("x-a", 101, 431), ("cookie", 300, 200)] {
            let mut request = get(address, "/x");
            for _ in 0..count {
                request.headers_mut().append(name, HeaderValue::from_static("v"));
            }
            assert_eq!(client.send_request(request).await.unwrap().status(), status, "{count} {name}");
        }
    });
}

fn many_streams_share_a_connection() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let client = connect(address).await;
        let answers: Vec<_> = (0..50)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    let response = client.send_request(get(address, "/x")).await.unwrap();
                    response.into_body().collect().await.unwrap().to_bytes()
                })
            })
            .collect();
        for answer in answers {
            assert_eq!(answer.await.unwrap(), "ok");
        }
    });
}

fn get_with_a_body_keeps_it() {
    let (heard, said) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        let head = peer.head().unwrap();
        heard.send(upstream_body(peer, &head)).unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let body = Slices([Bytes::from_static(b"one"), Bytes::from_static(b"two")].into_iter());
        let request = Request::get(format!("http://{address}/x")).body(body).unwrap();
        assert_eq!(client.send_request(request).await.unwrap().status(), 200);
    });
    assert_eq!(said.recv().unwrap(), b"onetwo");
}

fn trailers_are_forwarded() {
    let upstream = Upstream::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\ngrpc-status: 0\r\n\r\n",
    );
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let response = client.send_request(get(address, "/x")).await.unwrap();
        let whole = response.into_body().collect().await.unwrap();
        let expected: HeaderMap =
            [("grpc-status".parse().unwrap(), "0".parse().unwrap())].into_iter().collect();
        assert_eq!(whole.trailers(), Some(&expected));
    });
}

fn upstream_failure_resets_the_stream() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let mut body = client.send_request(get(address, "/x")).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
        assert!(body.frame().await.unwrap().is_err(), "instead of a clean end");
    });
}

fn reset_stream_cancels_its_upstream_only() {
    let (sender, learned) = mpsc::channel();
    let upstream = Upstream::start(move |peer, number| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        peer.closed_after(now());
        sender.send((number, now())).unwrap();
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let mut body = client.send_request(get(address, "/x")).await.unwrap().into_body();
            body.frame().await.unwrap().unwrap();
            bodies.push(body);
        }
        eventually("both are in flight", || proxy.running.in_flight() == 2);
        let since = now();
        drop(bodies.remove(0));
        // Lets the client's task send the reset.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (number, at) = learned.recv().unwrap();
        assert_eq!(number, 0);
        assert!(at.duration_since(since) < PROMPT, "{:?}", at.duration_since(since));
        assert_eq!(proxy.running.in_flight(), 1);
    });
}

fn closed_connection_cancels_all_its_streams() {
    let (sender, learned) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.closed_after(now());
        sender.send(now()).unwrap();
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    let begun = {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = connect(address).await;
            for _ in 0..3 {
                let mut client = client.clone();
                tokio::spawn(async move { client.send_request(get(address, "/x")).await });
            }
            while proxy.running.in_flight() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // The upstreams have the requests before the client leaves.
            while upstream.connections() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        now()
    };
    for _ in 0..3 {
        assert!(learned.recv().unwrap().duration_since(begun) < PROMPT);
    }
    eventually("all are over", || proxy.running.in_flight() == 0);
}

fn slow_stream_stops_its_upstream() {
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&sent);
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        let piece = vec![b'x'; 64 << 10];
        while peer.try_send(&piece) {
            counted.fetch_add(piece.len(), std::sync::atomic::Ordering::SeqCst);
        }
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let _unread = client.send_request(get(address, "/x")).await.unwrap();
        let mut last = (0, 0);
        while last.1 < 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let now = sent.load(std::sync::atomic::Ordering::SeqCst);
            last = if now == last.0 && now > 0 { (now, last.1 + 1) } else { (now, 0) };
        }
        assert!(last.0 < 50_000_000, "{last:?}");
    });
}

fn rejections_do_not_close_the_connection() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        let mut wrong = get(address, "/x");
        wrong.headers_mut().insert("host", "elsewhere".parse().unwrap());
        assert_eq!(client.send_request(wrong).await.unwrap().status(), 400);
        assert_eq!(client.send_request(get(address, "/x")).await.unwrap().status(), 200);
    });
}

fn drain_lets_streams_finish() {
    let (upstream, go) = Upstream::answering_on_signal("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let (address, running) = (proxy.listener(), &proxy.running);
    run(async move {
        let mut client = connect(address).await;
        let answer = tokio::spawn(async move { client.send_request(get(address, "/x")).await });
        while upstream.connections() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.drain();
        go.send(()).unwrap();
        let response = answer.await.unwrap().unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    });
    proxy.running.join();
    assert_eq!(proxy.running.in_flight(), 0);
}

/// A body of slices, without a length.
struct Slices<I>(I);

impl<I: Iterator<Item = Bytes> + Unpin> Body for Slices<I> {
    type Data = Bytes;
    type Error = std::convert::Infallible;
    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(self.0.next().map(|slice| Ok(Frame::data(slice))))
    }
}

fn idle_connection_is_no_slow_head() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| plan.head_timeout = Duration::from_millis(100));
    let address = proxy.listener();
    run(async move {
        let mut client = connect(address).await;
        for _ in 0..2 {
            let response = client.send_request(get(address, "/x")).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
}

/// It gets a GOAWAY at once, and a second later the end.
fn drain_ends_a_connection_whose_client_does_not() {
    if Side::Clients.excludes("the client sends frames without TLS") {
        return;
    }
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut client = TcpStream::connect(proxy.listener()).unwrap();
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    // The preface, and empty settings.
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let frame = |client: &mut TcpStream| {
        let mut head = [0; 9];
        client.read_exact(&mut head).ok()?;
        client.read_exact(&mut vec![0; usize::from(head[2])]).ok()?;
        Some(head[3])
    };
    assert_eq!(frame(&mut client), Some(SETTINGS));
    let since = now();
    proxy.running.drain();
    while frame(&mut client).expect("a GOAWAY") != GOAWAY {}
    while frame(&mut client).is_some() {}
    assert!(now().duration_since(since) >= Duration::from_secs(1));
    proxy.running.join();
}

/// It has arrived when the proxy closes its connection, and waits for its turn.
fn request_of_a_connection_that_gave_its_place_never_begins() {
    if Side::Clients.excludes("the client sends frames without TLS") {
        return;
    }
    const CHAT: &str = "/v1/chat/completions";
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| plan.connections = 2);
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        [&[0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let mut unlucky = TcpStream::connect(proxy.listener()).unwrap();
    unlucky.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    unlucky.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    unlucky.set_read_timeout(Some(DEADLINE)).unwrap();
    unlucky.read_exact(&mut [0; 9]).unwrap();
    // A POST to this path, whose body is to follow, by the static table (RFC 7541 appendix A).
    let path = [&[0x83, 0x86, 0x44, u8::try_from(CHAT.len()).unwrap()], CHAT.as_bytes()].concat();
    let head = frame(HEADERS, END_HEADERS, 1, &[&path[..], &[0x41, 1, b'h']].concat());
    // Another connection of this client keeps the worker busy until a client without a place, and the request, are there.
    let (listener, (give, gives)) = (proxy.listener(), mpsc::channel());
    proxy.seen().at_begin = Some(Box::new(move || {
        let other = connect_from(2, listener);
        unlucky.write_all(&head).unwrap();
        give.send((other, unlucky)).unwrap();
    }));
    let mut busy = Peer::connect(listener);
    assert!(exchange(&mut busy, post(CHAT, "", "{}")).0.starts_with("HTTP/1.1 200"));
    let (mut other, _unlucky) = gives.recv().unwrap();
    assert!(exchange(&mut other, post(CHAT, "", "{}")).0.starts_with("HTTP/1.1 200"));
    assert_eq!(proxy.seen().lost, [Dropped::Connection]);
    // Those of the two requests that were answered.
    for _ in 0..2 {
        assert_eq!(record(&proxy).ending, Ending::Complete);
    }
}
