//! No client holds more than a share of the common capacities. Each attack comes from one address, and a client at
//! another one is served meanwhile, as is one at the same address if what it lacks is held by slow ones.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame};
use hyper::client::conn::http2::SendRequest;
use relay::{Dropped, Refusal, UsageStep};
use socket2::{Domain, Socket, Type};
use tenant::{BodyKey, Nets, Rule, TenantPart};
use usage::Policy;

use super::Proxy;
use crate::gate::refusing;
use crate::support::http2::{connect, run};
use crate::support::{DEADLINE, PROMPT, Peer, TestPlan, Upstream, eventually, now, upstream_body};
use crate::tenants::{in_force, rules};
use crate::usage::{ASKED, PLAIN, Server, policy, request, steps};

crate::support::wires::table! {
    (all):
        client_that_leaves_while_it_waits_for_memory_is_noticed,
        silent_connections_leave_places_for_others,
        new_connection_stays_for_its_request,
        half_open_connections_leave_places_for_others,
        single_address_is_never_rejected;
    (all, slow):
        stalled_uploads_leave_memory,
        stalled_uploads_change_no_tenant,
        evicted_upload_continues_unbuffered,
        silent_upload_ends,
        silent_upstream_ends_nothing,
        slow_upstream_ends_no_upload,
        half_open_requests_leave_upstream_connections,
        upstream_cap_answers_503_with_retry_after,
        other_clients_always_have_sockets,
        tenants_behind_a_trusted_peer_have_shares;
    (http1_clients, "HTTP/2 clients cannot switch protocols"):
        idle_tunnels_leave_places_for_others;
    (http1_clients, slow, "HTTP/2 clients cannot switch protocols"):
        quiet_tunnels_leave_upstream_connections;
    (http1_clients, slow, "it writes the first bytes of both protocols"):
        head_timeout_counts_from_the_accept;
}

const CHAT: &str = "/v1/chat/completions";

/// Bytes of the limit for buffered bodies in these tests: one address gets three quarters, six of [`STALLED_BYTES`].
const ROOM_BYTES: usize = 8 << 20;
const STALLED_BYTES: usize = 1 << 20;

/// Connects from another address of this machine.
pub(crate) fn connect_from(last: u8, address: SocketAddr) -> Peer {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    Peer::new(socket.into())
}

/// Sends a request on a connection from 127.0.0.`last`; returns head and body of the answer.
pub(crate) fn ask_from(last: u8, proxy: &Proxy, request: &str) -> (String, String) {
    let mut client = connect_from(last, proxy.address());
    client.send(request);
    let head = client.head().unwrap();
    let body = upstream_body(&mut client, &head);
    (head, String::from_utf8(body).unwrap())
}

/// An upload of `announced` bytes to `path` that stops one byte before its end.
fn stall(client: &mut Peer, path: &str, announced: usize) {
    client.send(format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {announced}\r\n\r\n"));
    client.send(vec![b' '; announced - 1]);
}

/// A server that switches protocols if it is asked to.
fn switching() -> Upstream {
    Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            if head.to_ascii_lowercase().contains("\r\nupgrade:") {
                peer.send(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                );
                peer.rest();
            } else {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    })
}

/// A tunnel of a client at 127.0.0.`last`.
fn tunnel_from(last: u8, proxy: &Proxy) -> Peer {
    let mut client = connect_from(last, proxy.address());
    client.send("GET /v1/realtime HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 101"));
    client
}

fn idle_tunnels_leave_places_for_others() {
    let upstream = switching();
    let proxy = Proxy::with(upstream.address, |plan| plan.connections = 8);
    let tunnels: Vec<_> = (0..8).map(|_| tunnel_from(1, &proxy)).collect();
    let (head, _) = ask_from(2, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    drop(tunnels);
}

/// Requests of one address leave a quarter of the connections; the quietest of its tunnels end for another address that
/// needs more than is left.
fn quiet_tunnels_leave_upstream_connections() {
    let upstream = switching();
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = 8);
    let mut tunnels: Vec<_> = (0..6).map(|_| tunnel_from(1, &proxy)).collect();
    let (head, _) = ask_from(1, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(proxy.running.reader()().upstream_connections[0].taken, 6);
    let of_another = tunnel_from(2, &proxy);
    assert_eq!(proxy.seen().lost, []);
    // The first one is the only one that is in use.
    tunnels[0].send("x");
    for _ in 0..2 {
        let (head, _) = ask_from(2, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let ended = proxy.seen().lost.iter().filter(|lost| **lost == Dropped::Connection).count();
    assert!((1..=4).contains(&ended), "{ended}: one share, and none within its own");
    assert_eq!(tunnels[1].rest(), "");
    assert!(tunnels[0].try_send("y"));
    drop((tunnels, of_another));
}

fn small_room(plan: &mut TestPlan) {
    plan.shares.gather_room_bytes = ROOM_BYTES;
}

/// Six uploads that stall one byte before their end, which fill what one address gets.
fn fill_room(proxy: &Proxy) -> Vec<Peer> {
    let full = 6 * (STALLED_BYTES - 1);
    let stalled = (0..6).map(|_| {
        let mut client = connect_from(1, proxy.address());
        stall(&mut client, CHAT, STALLED_BYTES);
        client
    });
    let stalled = stalled.collect();
    eventually("the limit is reached", || proxy.running.reader()().gathered_bytes.taken == full);
    stalled
}

fn stalled_uploads_leave_memory() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        small_room(plan);
    });
    let stalled = fill_room(&proxy);
    for (last, gave_way) in [(2, false), (1, true)] {
        for _ in 0..3 {
            let (head, body) = ask_from(last, &proxy, &request(PLAIN));
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            assert!(!body.contains("usage"), "{body}");
        }
        assert_eq!(proxy.seen().lost.contains(&Dropped::Gathering), gave_way);
    }
    let asked = server.bodies().iter().filter(|body| *body == ASKED).count();
    assert_eq!(asked, 6, "usage was requested in each");
    drop(stalled);
}

/// Nothing is read from it, and it would have waited for longer.
fn client_that_leaves_while_it_waits_for_memory_is_noticed() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        small_room(plan);
    });
    let stalled = fill_room(&proxy);
    let mut waiting = connect_from(1, proxy.address());
    waiting.send(request(PLAIN));
    eventually("it waits", || proxy.running.in_flight() == stalled.len() + 1);
    let since = now();
    drop(waiting);
    eventually("its request has ended", || proxy.running.in_flight() == stalled.len());
    assert!(now().duration_since(since) < PROMPT);
}

/// A tenant named by the body is resolved all the same, and no other tenant is billed.
fn stalled_uploads_change_no_tenant() {
    let by_user = Rule::Body(BodyKey::User);
    let server = Server::streaming();
    let gate = std::sync::Arc::new(relay::Gate::default());
    gate.refuse(refusing(&["bob"]));
    let proxy = Proxy::with(server.upstream.address, |plan| {
        in_force(rules(vec![by_user]))(plan);
        small_room(plan);
        plan.control.gate = Some(gate);
    });
    let stalled = fill_room(&proxy);
    let body = r#"{"user":"bob","messages":[]}"#;
    let mut client = connect_from(1, proxy.address());
    client.send(format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body[..5]);
    std::thread::sleep(Duration::from_millis(50));
    client.send(&body[5..]);
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    // The ended uploads are answered, and belong to no other tenant either.
    eventually("they are answered", || proxy.seen().refused.contains(&Refusal::GatherRoom));
    assert!(server.bodies().is_empty());
    drop(stalled);
}

fn evicted_upload_continues_unbuffered() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        small_room(plan);
    });
    let mut stalled = fill_room(&proxy);
    ask_from(1, &proxy, &request(PLAIN));
    eventually("one gave way", || steps(&proxy).contains(&UsageStep::TooLarge));
    let refused = proxy.seen().refused.len();
    assert_eq!(refused, 0);
    for client in &mut stalled {
        client.send(" ");
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
    }
}

fn silent_upload_ends() {
    for path in [CHAT, "/unmetered", "/v1/responses"] {
        let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let proxy = Proxy::with(upstream.address, |plan| plan.shares.body_idle = Duration::from_secs(1));
        let mut client = proxy.connect();
        stall(&mut client, path, 100);
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 408"), "{path}: {head}");
        assert!(head.contains("connection: close"), "{path}: {head}");
        assert_eq!(proxy.seen().refused, [Refusal::SlowBody], "{path}");
    }
}

/// An inference server may compute for any time.
fn silent_upstream_ends_nothing() {
    let upstream = Upstream::start(|peer, _| {
        let head = peer.head().unwrap();
        upstream_body(peer, &head);
        std::thread::sleep(Duration::from_secs(4));
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
        std::thread::sleep(Duration::from_secs(4));
        peer.send("k");
        peer.head();
    });
    let proxy = Proxy::with(upstream.address, |plan| {
        plan.shares.body_idle = Duration::from_secs(1);
        plan.shares.client_stall = Duration::from_secs(1);
    });
    let mut client = proxy.connect();
    client.send(request(PLAIN));
    client.head().unwrap();
    assert_eq!(client.exactly(2), b"ok");
    assert_eq!(proxy.seen().refused, []);
}

/// An upstream that reads slowly does not make its client slow.
fn slow_upstream_ends_no_upload() {
    let upstream = Upstream::start(|peer, _| {
        let head = peer.head().unwrap();
        std::thread::sleep(Duration::from_secs(4));
        upstream_body(peer, &head);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        peer.head();
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.body_idle = Duration::from_secs(1));
    let mut client = proxy.connect();
    let body = vec![b' '; 24 << 20];
    client.send(format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(body);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
}

/// A body of one byte that never ends.
pub(crate) struct Endless(pub(crate) Option<Bytes>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |byte| Poll::Ready(Some(Ok(Frame::data(byte)))))
    }
}

/// Requests over HTTP/2 of which the head and one byte of the body arrive.
async fn half_open(address: SocketAddr, path: &str, n: usize) -> SendRequest<Endless> {
    let mut client = connect::<Endless>(address).await;
    for _ in 0..n {
        let body = Endless(Some(Bytes::from_static(b"{")));
        let request = Request::post(format!("http://{address}{path}")).body(body).unwrap();
        client.ready().await.unwrap();
        tokio::spawn(client.send_request(request));
    }
    // On the test's own thread.
    tokio::time::sleep(Duration::from_millis(300)).await;
    client
}

fn half_open_requests_leave_upstream_connections() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for path in ["/unmetered", "/v1/responses"] {
        half_open_requests(&upstream, path);
    }
}

fn half_open_requests(upstream: &Upstream, attacked: &str) {
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = 20);
    let address = proxy.listener();
    run(async {
        let held = half_open(address, attacked, 250).await;
        eventually("a share is left", || proxy.running.reader()().upstream_connections[0].taken == 15);
        for path in ["/unmetered", CHAT] {
            for _ in 0..3 {
                let asked = request("{}").replace(CHAT, path);
                let (head, body) = ask_from(2, &proxy, &asked);
                assert!(head.starts_with("HTTP/1.1 200"), "{head}");
                assert_eq!(body, "ok");
            }
        }
        eventually("others are refused", || proxy.seen().refused.contains(&Refusal::UpstreamFull));
        drop(held);
    });
}

/// Beyond what one address gets, a request is answered 503, and those in flight continue.
fn upstream_cap_answers_503_with_retry_after() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    let upstream = Upstream::start(move |peer, _| {
        while let Some(head) = peer.head() {
            upstream_body(peer, &head);
            let _ = gone.lock().unwrap().recv();
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.upstream_connections = 6);
    let mut waiting: Vec<_> = (0..4).map(|_| proxy.connect()).collect();
    waiting.iter_mut().for_each(|client| client.send(request("{}")));
    eventually("all are taken", || proxy.running.reader()().upstream_connections[0].taken == 4);
    let (head, _) = ask_from(1, &proxy, &request("{}"));
    assert!(head.starts_with("HTTP/1.1 503") && head.contains("retry-after: 1\r\n"), "{head}");
    // Any of the server's threads takes one.
    (0..4).for_each(|_| go.send(()).unwrap());
    for client in &mut waiting {
        client.head();
        assert_eq!(client.exactly(2), b"ok");
    }
    eventually("all are released", || proxy.running.reader()().upstream_connections[0].taken == 0);
}

fn silent_connections_leave_places_for_others() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| {
        plan.connections = 16;
        plan.head_timeout = DEADLINE;
    });
    let mut kept = connect_from(2, proxy.address());
    for last in [1, 2, 3] {
        let silent: Vec<_> = (0..16).map(|_| connect_from(1, proxy.address())).collect();
        kept.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        kept.head().unwrap();
        assert_eq!(kept.exactly(2), b"ok", "a peer within its share keeps its connection");
        assert_eq!(ask_from(last, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n").1, "ok");
        drop(silent);
    }
    assert!(proxy.seen().lost.contains(&Dropped::Connection));
}

/// A connection whose first request is on its way is closed for no other client within its share.
fn new_connection_stays_for_its_request() {
    const ALL: usize = 16;
    const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    let upstream = Upstream::start(|peer, _| {
        if peer.head().unwrap().contains("/busy") {
            peer.rest();
        }
        // The next request would meet the end of the connection.
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.connections = ALL);
    let busy = |last, count| {
        let clients = (0..count).map(|_| connect_from(last, proxy.address()));
        let started = clients.map(|mut client| {
            client.send("GET /busy HTTP/1.1\r\nHost: h\r\n\r\n");
            client
        });
        started.collect::<Vec<_>>()
    };
    let held = (busy(1, 3), busy(3, ALL - 4));
    eventually("the requests are in flight", || proxy.running.in_flight() == ALL - 1);
    loop {
        let begun = now();
        let mut new = connect_from(2, proxy.address());
        eventually("all places are taken", || proxy.running.reader()().connections.taken == ALL);
        let mut asking = connect_from(1, proxy.address());
        std::thread::sleep(Duration::from_millis(100));
        if new.try_send(GET) && new.head().is_some() {
            // From now on, it is idle, and its place is taken.
            asking.send(GET);
            assert!(asking.head().unwrap().starts_with("HTTP/1.1 200"));
            break;
        }
        // On a busy machine, the request may come too late.
        assert!(
            begun.elapsed().as_nanos() > u128::from(relay::limits::NEW_CONNECTION_GRACE_NS),
            "it was closed"
        );
    }
    drop(held);
}

/// Connections with HTTP/2's preface and no request, or with a byte of a head, are treated like silent ones.
fn half_open_connections_leave_places_for_others() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| {
        plan.connections = 16;
        plan.head_timeout = DEADLINE;
    });
    for said in
        ["G", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"]
    {
        let silent: Vec<_> = (0..16)
            .map(|_| {
                let mut client = connect_from(1, proxy.address());
                client.try_send(said);
                client
            })
            .collect();
        assert_eq!(ask_from(2, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n").1, "ok");
        drop(silent);
    }
}

fn head_timeout_counts_from_the_accept() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| plan.head_timeout = Duration::from_millis(300));
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for said in ["", "G", "PRI * HTTP/2.0\r\n", preface, &format!("{preface}\0\0\0\x04\0\0\0\0\0")] {
        let begun = now();
        let mut client = proxy.connect();
        client.send(said);
        assert!(client.closed_after(begun) < DEADLINE, "{said:?}");
    }
}

/// The process has a limited number of descriptors for sockets.
fn other_clients_always_have_sockets() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| {
        plan.shares.sockets = 40;
        plan.head_timeout = DEADLINE;
    });
    let address = proxy.listener();
    run(async {
        let silent: Vec<_> = (0..60).map(|_| connect_from(1, address)).collect();
        let held = half_open(address, "/unmetered", 250).await;
        for _ in 0..3 {
            let (head, _) = ask_from(2, &proxy, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        }
        drop((silent, held));
    });
}

/// Requests of one address wait for one another.
fn single_address_is_never_rejected() {
    let server = Server::streaming();
    let proxy = Proxy::with(server.upstream.address, |plan| {
        policy(Policy::Inject)(plan);
        plan.connections = 64;
        plan.shares.gather_room_bytes = ROOM_BYTES;
        plan.shares.upstream_connections = 64;
    });
    let body = format!("{{\"stream\":true,\"prompt\":\"{}\"}}", "x".repeat(ROOM_BYTES / 120));
    let clients: Vec<_> = (0..64)
        .map(|_| {
            let (address, request) = (proxy.address(), request(&body));
            std::thread::spawn(move || {
                let mut client = Peer::connect(address);
                client.send(&request);
                let head = client.head().unwrap();
                upstream_body(&mut client, &head);
                head
            })
        })
        .collect();
    for client in clients {
        let head = client.join().unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    assert_eq!(steps(&proxy), vec![UsageStep::Injected; 64]);
    let seen = proxy.seen();
    assert_eq!((seen.refused.len(), seen.lost.len()), (0, 0));
}

/// Behind an ingress all clients have one address, so shares are by tenant there.
fn tenants_behind_a_trusted_peer_have_shares() {
    let header = Rule::Header { field: "x-tenant".into(), tenant: TenantPart::Value, principal: None };
    let trusted = Nets::read(["127.0.0.1"]).unwrap();
    let spec = tenant::Spec { trusted, ..rules(vec![header]) };
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::with(upstream.address, |plan| {
        in_force(spec)(plan);
        plan.shares.upstream_connections = 8;
    });
    // Long enough that the upstream is opened before their end.
    let stalled: Vec<_> = (0..8)
        .map(|_| {
            let mut client = proxy.connect();
            let head =
                format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\nX-Tenant: a\r\nContent-Length: 100000\r\n\r\n");
            client.send(head);
            client.send(vec![b' '; 99_999]);
            client
        })
        .collect();
    eventually("a share is left", || proxy.running.reader()().upstream_connections[0].taken == 6);
    let (head, body) = ask_from(1, &proxy, &request("{}").replace("Host: h", "Host: h\r\nX-Tenant: b"));
    assert!(head.starts_with("HTTP/1.1 200") && body == "ok", "{head}");
    drop(stalled);
}
