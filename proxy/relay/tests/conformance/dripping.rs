//! Uploads that never pause and never end: some bytes each half second, above every minimum rate. They are ended for
//! another request, as silent ones are, and reach their maximum time.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame};
use meter::Ending;
use relay::{Refusal, UsageStep};
use tokio::time::Interval;
use usage::Policy;

use super::Proxy;
use super::shares::{Endless, ask_from, connect_from};
use crate::support::http2::{connect, run};
use crate::support::{DEADLINE, Peer, Upstream, eventually, now};
use crate::usage::{PLAIN, Server, policy, request, steps};

crate::support::wires::table! {
    (all, slow):
        dripping_uploads_leave_upstream_connections,
        dripping_uploads_leave_places,
        dripping_streams_leave_sockets,
        dripping_uploads_of_four_leave_gather_room,
        slow_upload_gives_way_to_its_own_holder,
        upload_without_end_ends;
    (http1_clients, slow, "it has clients of both protocols"):
        only_grpc_clients_may_be_silent;
}

const CHAT: &str = "/v1/chat/completions";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const DRIP: &[u8] = &[b' '; 200];
const PAUSE: Duration = Duration::from_millis(500);

/// Clients that send chunks until they are dropped. A client whose connection ends connects again.
struct Drips {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drips {
    /// Starts `count` uploads from 127.0.0.`last`, each with `first` bytes at its beginning.
    fn start(last: u8, address: SocketAddr, path: &str, (n, first): (usize, usize)) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let head = format!("POST {path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        let begin = move || {
            let mut client = connect_from(last, address);
            client.try_send(&head);
            if first > 0 {
                client.try_send(chunk(&vec![b' '; first]));
            }
            client
        };
        let thread = std::thread::spawn(move || {
            let mut clients: Vec<Peer> = (0..n).map(|_| begin()).collect();
            while !stopped.load(Ordering::Relaxed) {
                for client in &mut clients {
                    if !client.try_send(chunk(DRIP)) {
                        *client = begin();
                    }
                }
                std::thread::sleep(PAUSE);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Drips {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// As [`chunked`], over HTTP/2.
struct Dripping(Interval);

impl Body for Dripping {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.0.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(DRIP)))))
    }
}

fn assert_served(proxy: &Proxy, last: u8, path: &str) {
    let begun = now();
    let (head, body) = ask_from(last, proxy, &request("{}").replace(CHAT, path));
    assert!(head.starts_with("HTTP/1.1 200") && body == "ok", "{path}: {head}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{path}: {:?}", begun.elapsed());
}

fn dripping_uploads_leave_upstream_connections() {
    let upstream = Upstream::answering(OK);
    for (attacked, first) in [("/unmetered", 0), (CHAT, 0), ("/v1/responses", 100_000)] {
        let proxy = Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = 20);
        let drips = Drips::start(1, proxy.address(), attacked, (30, first));
        eventually("a share is left", || proxy.running.reader()().upstream_connections[0].taken == 15);
        for path in ["/unmetered", CHAT, CHAT] {
            assert_served(&proxy, 2, path);
        }
        eventually("others are refused", || proxy.seen().refused.contains(&Refusal::UpstreamFull));
        drop(drips);
    }
}

/// Half of the attacker's connections precede the other client's in the listener's queue.
fn dripping_uploads_leave_places() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::with(upstream.address, |plan| plan.connections = 16);
    let drips = Drips::start(1, proxy.address(), CHAT, (80, 0));
    eventually("all are taken", || proxy.running.in_flight() == 16);
    let begun = now();
    for _ in 0..3 {
        let (head, _) = ask_from(2, &proxy, &request("{}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    let ended = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert_eq!(ended.ending, Ending::ProxyError, "the exchange ended for another reason");
    drop(drips);
}

/// The process has a limited number of descriptors for sockets.
fn dripping_streams_leave_sockets() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.sockets = 40);
    let address = proxy.listener();
    run(async {
        let mut client = connect::<Dripping>(address).await;
        for _ in 0..56 {
            let body = Dripping(tokio::time::interval(PAUSE));
            let request = Request::post(format!("http://{address}{CHAT}")).body(body).unwrap();
            client.ready().await.unwrap();
            tokio::spawn(client.send_request(request));
        }
        tokio::time::sleep(PAUSE).await;
        let asked = tokio::task::spawn_blocking(move || {
            for _ in 0..3 {
                assert_served(&proxy, 2, CHAT);
            }
        });
        asked.await.unwrap();
        drop(client);
    });
}

fn dripping_uploads_of_four_leave_gather_room() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        plan.shares.gather_room_bytes = 8 << 20;
    });
    let drips: Vec<_> =
        (1..=4).map(|last| Drips::start(last, proxy.address(), CHAT, (2, (1 << 20) - (16 << 10)))).collect();
    eventually("little is left", || proxy.running.reader()().gathered_bytes.taken > (7 << 20));
    let body = PLAIN.replacen('{', &format!("{{\"x\":\"{}\",", "x".repeat(1 << 20)), 1);
    for _ in 0..3 {
        let (head, _) = ask_from(5, &proxy, &request(&body));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let injected = steps(&proxy).iter().filter(|step| **step == UsageStep::Injected).count();
    assert_eq!(injected, 3, "the proxy requested usage in each: {:?}", steps(&proxy));
    drop(drips);
}

/// Slow uploads have no time limit while nothing else needs their connections; then one gives way.
fn slow_upload_gives_way_to_its_own_holder() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = 8);
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut slow: Vec<_> = (0..6).map(|_| proxy.connect()).collect();
    slow.iter_mut().for_each(|client| client.send(&head));
    for _ in 0..16 {
        slow.iter_mut().for_each(|client| client.send(chunk(DRIP)));
        std::thread::sleep(PAUSE);
    }
    assert_eq!(proxy.seen().refused, []);
    assert_served(&proxy, 1, CHAT);
    assert_eq!(proxy.seen().refused, [Refusal::UpstreamFull]);
    let answers: Vec<_> = slow
        .iter_mut()
        .map(|client| {
            client.try_send("0\r\n\r\n");
            client.head().unwrap()
        })
        .collect();
    assert_eq!(answers.iter().filter(|head| head.starts_with("HTTP/1.1 200")).count(), 5, "{answers:?}");
}

fn upload_without_end_ends() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.body_time = Duration::from_secs(2));
    let head = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (mut dripping, mut honest) = (proxy.connect(), proxy.connect());
    dripping.send(head);
    honest.send(head);
    for _ in 0..10 {
        dripping.try_send(chunk(DRIP));
        honest.send(chunk(&[b' '; 4096]));
        std::thread::sleep(PAUSE);
    }
    honest.send("0\r\n\r\n");
    assert!(honest.head().unwrap().starts_with("HTTP/1.1 200"));
    assert!(dripping.head().unwrap().starts_with("HTTP/1.1 408"));
    assert_eq!(proxy.seen().refused, [Refusal::SlowBody]);
}

/// A gRPC client may be silent without limit; a gRPC content type alone does not exempt other requests.
fn only_grpc_clients_may_be_silent() {
    let upstream = Upstream::answering(OK);
    let proxy = Proxy::with(upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        plan.shares.body_idle = Duration::from_secs(1);
    });
    let address = proxy.listener();
    for path in [CHAT, "/inference.GRPCInferenceService/ModelInfer"] {
        let mut client = proxy.connect();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc\r\nContent-Length: 9\r\n\r\n"
        ));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 408"), "{path}");
    }
    run(async {
        let ask = async |path| {
            let mut client = connect::<Endless>(address).await;
            let request = Request::post(format!("http://{address}{path}"))
                .header("content-type", "application/grpc+proto");
            let request = request.body(Endless(Some(Bytes::from_static(b"{")))).unwrap();
            let answer = tokio::time::timeout(Duration::from_secs(5), client.send_request(request)).await;
            answer.ok().map(|answer| answer.unwrap().status().as_u16())
        };
        for path in [CHAT, "/v1/responses", "/v1/embeddings", "/invocations"] {
            assert_eq!(ask(path).await, Some(408), "{path}");
        }
    });
    run(async {
        let mut client = connect::<Endless>(address).await;
        let path = "/inference.GRPCInferenceService/ModelInfer";
        let request =
            Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc");
        let request = request.body(Endless(Some(Bytes::from_static(b"{")))).unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(4), client.send_request(request)).await;
        assert!(answer.is_err(), "the proxy still waits for it");
    });
}
