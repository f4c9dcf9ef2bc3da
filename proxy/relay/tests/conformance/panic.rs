//! A panic costs its own connection and increments a counter, nothing else (law 3).

use relay::Dropped;

use super::Proxy;
use crate::support::{Upstream, eventually};

crate::support::wires::table! {
    (all):
        panic_leaves_other_connections_alone;
}

fn panic_leaves_other_connections_alone() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let proxy = Proxy::new(upstream.address);
    let mut other = proxy.connect();
    other.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    other.head();
    other.exactly(2);

    proxy.seen().panics = true;
    let mut unlucky = proxy.connect();
    unlucky.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(unlucky.rest(), "");
    eventually("it is counted", || proxy.seen().lost == [Dropped::Panic]);

    other.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    other.head();
    assert_eq!(other.exactly(2), b"ok");
    eventually("the in-flight gauge is zero", || proxy.running.in_flight() == 0);
}
