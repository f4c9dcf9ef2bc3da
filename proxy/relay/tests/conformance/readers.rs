//! Clients that take their answers slowly, above every minimum rate, and ask again once they are ended: other requests
//! are served all the same, from other addresses and from the same one. A client that takes what arrives is not ended.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2::SendRequest;
use meter::Ending;
use relay::{Dropped, Refusal};
use tokio::sync::oneshot;

use super::Proxy;
use super::shares::{ask_from, connect_from};
use crate::support::http2::connect_with_window;
use crate::support::{DEADLINE, Peer, Upstream, eventually, upstream_body};
use crate::usage::{HEAD, chunk, delta, request};

crate::support::wires::table! {
    (all):
        slow_readers_leave_upstream_connections;
    (all, slow):
        slowest_reader_gives_way_to_another_address,
        slowest_reader_gives_way_to_its_own_address,
        long_answers_leave_upstream_connections,
        stream_without_a_window_is_cut,
        unread_answers_leave_places;
}

const CHAT: &str = "/v1/chat/completions";
const LONG: &str = r#"{"model":"long"}"#;
const PAUSE: Duration = Duration::from_millis(500);

/// The window of a stream, which a slow reader takes once in each pause: 150 bytes a second.
const WINDOW: u32 = 75;

/// A server that generates without end for the model `long`, and answers other requests at once.
fn generating() -> Upstream {
    Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            let body = upstream_body(peer, &head);
            if body == LONG.as_bytes() {
                peer.send(HEAD);
                while peer.try_send(chunk(&delta("a token of an answer"))) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                return;
            }
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    })
}

/// Takes long answers slowly, one after the other.
async fn take_slowly(mut client: SendRequest<Full<Bytes>>, address: SocketAddr) {
    loop {
        let long = Request::post(format!("http://{address}{CHAT}"));
        let Ok(answer) = client.send_request(long.body(Full::from(LONG)).unwrap()).await else { return };
        let mut body = answer.into_body();
        while let Some(Ok(_)) = body.frame().await {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Slow readers on the streams of one connection from 127.0.0.1, until it is dropped.
struct Readers {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Readers {
    fn start(proxy: &Proxy, streams: usize, window: u32) -> Self {
        let address = proxy.listener();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let attack = async move {
            let client = connect_with_window(address, window).await;
            for _ in 0..streams {
                tokio::spawn(take_slowly(client.clone(), address));
            }
            let _ = stopped.await;
        };
        Self { stop: Some(stop), thread: Some(std::thread::spawn(move || runtime.block_on(attack))) }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A client at 127.0.0.`last` that takes a long answer as it arrives.
fn long_from(last: u8, proxy: &Proxy) -> Peer {
    let mut client = connect_from(last, proxy.address());
    client.send(request(LONG));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    client
}

fn taken(proxy: &Proxy) -> usize {
    proxy.running.reader()().upstream_connections[0].taken
}

fn limited(upstream: &Upstream, connections: usize) -> Proxy {
    Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = connections)
}

fn slow_readers_leave_upstream_connections() {
    let upstream = generating();
    let proxy = limited(&upstream, 20);
    let readers = Readers::start(&proxy, 40, WINDOW);
    eventually("a share is left", || taken(&proxy) == 15);
    for _ in 0..20 {
        assert_eq!(ask_from(2, &proxy, &request("{}")).1, "ok");
    }
    drop(readers);
}

/// The client at another address needs more connections than are left.
fn slowest_reader_gives_way_to_another_address() {
    let upstream = generating();
    let proxy = limited(&upstream, 8);
    let mut well_read = long_from(1, &proxy);
    let readers = Readers::start(&proxy, 5, WINDOW);
    eventually("a share is left", || taken(&proxy) == 6);
    let mut other = long_from(2, &proxy);
    for _ in 0..3 {
        assert_eq!(ask_from(2, &proxy, &request("{}")).1, "ok");
    }
    let ended = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert_eq!((ended.ending, &*ended.identity.model), (Ending::ClientAbort, "long"));
    assert!(proxy.seen().lost.iter().all(|lost| *lost == Dropped::SlowClient));
    assert!(!proxy.seen().refused.contains(&Refusal::UpstreamFull));
    for client in [&mut well_read, &mut other] {
        client.until("token");
        client.exactly(10_000);
    }
    drop(readers);
}

/// All of them count as one holder, so no share separates them.
fn slowest_reader_gives_way_to_its_own_address() {
    let upstream = generating();
    let proxy = limited(&upstream, 20);
    let mut well_read = long_from(1, &proxy);
    let readers = Readers::start(&proxy, 25, WINDOW);
    eventually("a share is left", || taken(&proxy) == 15);
    for _ in 0..20 {
        let (head, body) = ask_from(1, &proxy, &request("{}"));
        assert!(head.starts_with("HTTP/1.1 200") && body == "ok", "{head}");
    }
    assert!(proxy.seen().lost.contains(&Dropped::SlowClient));
    well_read.exactly(10_000);
    drop(readers);
}

/// Long answers that are taken as they arrive stay, and leave a quarter of the connections.
fn long_answers_leave_upstream_connections() {
    let upstream = generating();
    let proxy = limited(&upstream, 8);
    let mut long: Vec<Peer> = (0..6).map(|_| long_from(1, &proxy)).collect();
    let (head, _) = ask_from(1, &proxy, &request("{}"));
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(ask_from(2, &proxy, &request("{}")).1, "ok");
    long.iter_mut().for_each(|client| drop(client.exactly(10_000)));
    assert_eq!(proxy.seen().lost, []);
}

/// A stream whose window is empty from the beginning is not polled by the library of HTTP/2.
fn stream_without_a_window_is_cut() {
    let upstream = generating();
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.client_stall = Duration::from_secs(1));
    let readers = Readers::start(&proxy, 1, 0);
    eventually("it is cut", || proxy.seen().lost.contains(&Dropped::SlowClient));
    drop(readers);
}

/// Over HTTP/1.1 each slow reader has a connection.
fn unread_answers_leave_places() {
    let upstream = Upstream::start(|peer, _| {
        if peer.head().unwrap().contains("/large") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
            while peer.try_send(vec![b'x'; 64 << 10]) {}
            return;
        }
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    for last in [2, 1] {
        let proxy = Proxy::with(upstream.address, |plan| plan.connections = 8);
        let unread = (0..8).map(|_| {
            let mut client = connect_from(1, proxy.address());
            client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
            client
        });
        let unread: Vec<Peer> = unread.collect();
        eventually("all places are taken", || proxy.running.in_flight() == 8);
        let (head, body) = ask_from(last, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && body == "ok", "{head}");
        assert_eq!(proxy.seen().lost, [Dropped::Connection]);
        drop(unread);
    }
}
