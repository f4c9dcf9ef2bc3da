//! A client that leaves while nothing is read from it.

use std::sync::mpsc;
use std::time::Duration;

use super::Proxy;
use crate::support::{CANCEL, Upstream, eventually, now};

crate::support::wires::table! {
    (all):
        client_leaves_while_its_server_reads_nothing;
}

/// The proxy notices a reset even when its buffer is full and it reads nothing more from its client.
fn client_leaves_while_its_server_reads_nothing() {
    let mut times = (0..5).map(|_| {
        let (ready, reached) = mpsc::channel();
        let (end, wait) = mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let upstream = Upstream::start(move |peer, _| {
            peer.head();
            ready.send(()).unwrap();
            let _ = wait.lock().unwrap().recv();
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
        reached.recv().unwrap();
        client.stream().set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        // More than the proxy and the sockets of its upstream hold.
        client.try_send(vec![b'x'; 8 << 20]);
        let since = now();
        client.reset();
        eventually("the request has ended", || proxy.running.in_flight() == 0);
        drop(end);
        since.elapsed()
    });
    assert!(times.any(|after| after < CANCEL), "a client that left was noticed late in 5 tries");
}
