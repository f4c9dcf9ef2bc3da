//! A client that leaves cancels its upstream request at once, in every phase (law 4).

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::Proxy;
use crate::support::{CANCEL, PROMPT, Peer, TestPlan, Upstream, eventually, now};

crate::support::wires::table! {
    (all):
        client_leaves_during_its_upload,
        client_leaves_during_its_chunked_upload,
        client_leaves_before_the_response_head,
        client_leaves_during_the_stream,
        client_leaves_after_a_pipelined_request,
        reset_cancels_even_with_half_close,
        client_leaves_during_the_upstream_connect;
    (all, slow):
        slow_client_leaves;
    (http1_clients, "HTTP/2 has no half of a connection to close"):
        half_close_cancels_unless_allowed;
    (http1_clients, slow, "the client of this test has its own socket"):
        client_that_vanishes_is_given_up,
        client_that_vanishes_in_its_stream_is_given_up;
}

const REQUEST: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}";

/// The way in which a client leaves.
const WAYS: [fn(Peer); 4] = [drop, Peer::reset, Peer::close, |mut client| {
    client.half_close();
    // Its socket stays open.
    std::mem::forget(client);
}];

/// The silence of a client after which it is given up.
const SILENCE: Duration = Duration::from_secs(30);

/// Tries of each way. A busy machine delays some, but not all.
const TRIES: u32 = 5;

/// Sends `before` from a client and lets it leave in each way while the upstream is at `reach`: the upstream's
/// connection closes at once.
fn learns(
    change: impl Fn(&mut TestPlan),
    before: impl Fn(&mut Peer),
    reach: impl Fn(&mut Peer) + Send + Sync + Clone + 'static,
) {
    for leave in WAYS {
        let mut times = (0..TRIES).map(|_| learns_after(&change, &before, reach.clone(), leave));
        assert!(times.any(|after| after < CANCEL), "a client that left was noticed late in {TRIES} tries");
    }
}

/// Returns the time from the client's leaving until the upstream's connection closes.
fn learns_after(
    change: impl Fn(&mut TestPlan),
    before: impl Fn(&mut Peer),
    reach: impl Fn(&mut Peer) + Send + Sync + 'static,
    leave: fn(Peer),
) -> Duration {
    let (ready, reached) = mpsc::channel();
    let (left, leaving) = mpsc::channel::<Instant>();
    let (sender, learned) = mpsc::channel();
    let leaving = std::sync::Mutex::new(leaving);
    let upstream = Upstream::start(move |peer, _| {
        reach(peer);
        ready.send(()).unwrap();
        let since = leaving.lock().unwrap().recv().unwrap();
        sender.send(peer.closed_after(since)).unwrap();
    });
    let proxy = Proxy::with(upstream.address, &change);
    let mut client = proxy.connect();
    before(&mut client);
    reached.recv().unwrap();
    let since = now();
    leave(client);
    left.send(since).unwrap();
    let after = learned.recv().unwrap();
    eventually("the request has ended", || proxy.running.in_flight() == 0);
    assert!(proxy.seen().lost.is_empty());
    after
}

fn client_leaves_during_its_upload() {
    learns(
        |_| {},
        |client| client.send("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123"),
        |upstream| {
            upstream.head();
            upstream.exactly(3);
        },
    );
}

fn client_leaves_during_its_chunked_upload() {
    learns(
        |_| {},
        |client| {
            client
                .send("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nde")
        },
        |upstream| {
            upstream.head();
            upstream.until("abc");
        },
    );
}

fn client_leaves_before_the_response_head() {
    learns(
        |_| {},
        |client| client.send(REQUEST),
        |upstream| {
            upstream.head();
            upstream.exactly(2);
        },
    );
}

fn client_leaves_during_the_stream() {
    learns(
        |_| {},
        |client| {
            client.send(REQUEST);
            client.head();
            client.until("one\r\n");
        },
        |upstream| {
            upstream.head();
            upstream.exactly(2);
            upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        },
    );
}

fn client_leaves_after_a_pipelined_request() {
    learns(
        |_| {},
        |client| client.send(format!("{REQUEST}{REQUEST}")),
        |upstream| {
            upstream.head();
            upstream.exactly(2);
        },
    );
}

fn slow_client_leaves() {
    learns(
        |_| {},
        |client| {
            client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
            client.head();
        },
        |upstream| {
            upstream.head();
            upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
            // Until all buffers are full.
            let piece = vec![b'x'; 1 << 20];
            upstream.stream().set_write_timeout(Some(Duration::from_millis(300))).unwrap();
            while upstream.try_send(&piece) {}
        },
    );
}

fn reset_cancels_even_with_half_close() {
    let (sender, learned) = mpsc::channel();
    let (ready, reached) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.exactly(2);
        ready.send(()).unwrap();
        sender.send(peer.closed_after(now())).unwrap();
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.half_close = true);
    let mut client = proxy.connect();
    client.send(REQUEST);
    reached.recv().unwrap();
    client.reset();
    assert!(learned.recv().unwrap() < PROMPT);
}

/// The kernel of a machine that is gone acknowledges nothing.
fn client_that_vanishes_is_given_up() {
    let (ready, reached) = mpsc::channel();
    let (sender, learned) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.exactly(2);
        peer.stream().set_read_timeout(Some(2 * SILENCE)).unwrap();
        ready.send(()).unwrap();
        sender.send(peer.closed_after(now())).unwrap();
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(REQUEST);
    reached.recv().unwrap();
    // Until both kernels have acknowledged all bytes: they would send them again, which is no silence.
    std::thread::sleep(Duration::from_secs(1));
    vanish(&client);
    let after = learned.recv().unwrap();
    assert!(after > SILENCE - PROMPT && after < SILENCE * 3 / 2, "{after:?}");
    eventually("the request has ended", || proxy.running.in_flight() == 0);
}

/// Bytes that are not acknowledged keep the kernel from probing.
fn client_that_vanishes_in_its_stream_is_given_up() {
    const STALL: Duration = Duration::from_secs(3);
    let (sender, learned) = mpsc::channel();
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.exactly(2);
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while peer.try_send("3\r\none\r\n") {
            std::thread::sleep(Duration::from_millis(100));
        }
        let _late = sender.send(());
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.client_stall = STALL);
    let mut client = proxy.connect();
    client.send(REQUEST);
    client.head();
    client.until("one\r\n");
    vanish(&client);
    // The request is long after 15 s, and the kernel measures the stall by its own retransmissions.
    learned.recv_timeout(SILENCE).expect("the request ends");
    eventually("the request has ended", || proxy.running.in_flight() == 0);
}

/// Lets the client's kernel drop each packet before it is processed, by the instruction `ret 0`.
fn vanish(client: &Peer) {
    let nothing = socket2::SockFilter::new(6, 0, 0, 0);
    socket2::SockRef::from(client.stream()).attach_filter(&[nothing]).unwrap();
}

fn client_leaves_during_the_upstream_connect() {
    // A listener with a full queue neither accepts nor refuses connections.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let _full: Vec<_> = (0..2)
        .map(|_| {
            let stream = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            stream.set_nonblocking(true).unwrap();
            let _ = stream.connect(&address.into());
            stream
        })
        .collect();
    let proxy = Proxy::with(address, |plan| plan.connect_timeout = Duration::from_secs(60));
    let mut client = proxy.connect();
    client.send(REQUEST);
    eventually("the request is in flight", || proxy.running.in_flight() == 1);
    drop(client);
    eventually("the request has ended", || proxy.running.in_flight() == 0);
}

fn half_close_cancels_unless_allowed() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let script = |peer: &mut Peer, _: usize| {
        peer.head();
        peer.exactly(2);
        // Long enough for the half-close to arrive first.
        std::thread::sleep(Duration::from_millis(100));
        peer.try_send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    };
    for (allowed, expected) in [(false, ""), (true, answer)] {
        let upstream = Upstream::start(script);
        let proxy = Proxy::with(upstream.address, |plan| plan.half_close = allowed);
        let mut client = proxy.connect();
        client.send(REQUEST);
        client.half_close();
        assert_eq!(client.rest().to_lowercase(), expected.to_lowercase());
    }
}
