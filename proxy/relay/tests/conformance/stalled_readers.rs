//! A client that reads its answer too slowly is cut, with its request, and counted.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use relay::Dropped;

use super::Proxy;
use crate::support::http2::{connect, connect_with_window, run};
use crate::support::{Upstream, eventually, now};

crate::support::wires::table! {
    (all, slow):
        client_that_reads_nothing_is_cut,
        client_that_reads_too_little_is_cut;
    (http2_clients, slow, "the clients of these tests use HTTP/2 themselves"):
        http2_stream_that_reads_nothing_is_cut_alone,
        http2_stream_that_reads_too_little_is_cut;
}

fn client_that_reads_nothing_is_cut() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
        while peer.try_send(vec![b'x'; 64 << 10]) {}
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.client_stall = Duration::from_secs(1));
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    eventually("it is cut", || proxy.seen().lost.contains(&Dropped::SlowClient));
    eventually("its request has ended", || proxy.running.in_flight() == 0);
}

/// Reads a little now and then, so that the kernel's timeout does not expire.
fn client_that_reads_too_little_is_cut() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
        while peer.try_send(vec![b'x'; 64 << 10]) {}
    });
    // More than all buffers hold, within the grace time.
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.body_min_rate_bytes = 100 << 20);
    let begun = now();
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    while !proxy.seen().lost.contains(&Dropped::SlowClient) {
        assert!(begun.elapsed() < Duration::from_secs(90));
        client.exactly(1 << 10);
        std::thread::sleep(Duration::from_millis(100));
    }
    eventually("its request has ended", || proxy.running.in_flight() == 0);
}

fn http2_stream_that_reads_nothing_is_cut_alone() {
    let upstream = Upstream::start(|peer, _| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /large") {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n");
                while peer.try_send(vec![b'x'; 64 << 10]) {}
                return;
            }
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let proxy = Proxy::with(upstream.address, |plan| plan.shares.client_stall = Duration::from_secs(1));
    let address = proxy.listener();
    let get = |path: &str| {
        Request::get(format!("http://{address}{path}")).body(http_body_util::Empty::<Bytes>::new()).unwrap()
    };
    run(async {
        let mut client = connect(address).await;
        let mut unread = client.send_request(get("/large")).await.unwrap().into_body();
        while !proxy.seen().lost.contains(&Dropped::SlowClient) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let answer = client.send_request(get("/small")).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
        while let Some(frame) = unread.frame().await {
            if frame.is_err() {
                return;
            }
        }
        panic!("the answer was not cut");
    });
}

/// With a window of a few bytes a client reads an answer at any speed, and is never silent.
fn http2_stream_that_reads_too_little_is_cut() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        peer.send(vec![b'x'; 100_000]);
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    let address = proxy.listener();
    // Opens a window of some bytes each half second, until it is cut.
    let take = async |window: u32| {
        let mut client = connect_with_window(address, window).await;
        let get = Request::get(format!("http://{address}/x")).body(http_body_util::Empty::<Bytes>::new());
        let mut body = client.send_request(get.unwrap()).await.unwrap().into_body();
        while let Some(Ok(_)) = body.frame().await {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let begun = now();
        tokio::select! {
            () = take(1) => assert!(begun.elapsed() > Duration::from_secs(25), "{:?}", begun.elapsed()),
            () = take(200) => panic!("400 bytes per second suffice"),
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("the stream was not cut"),
        }
    });
    eventually("it is counted", || proxy.seen().lost.contains(&Dropped::SlowClient));
}
