//! Servers that cannot be connected to.

use std::net::TcpListener;
use std::time::Duration;

use chance::Side;
use connect::{Address, Target};
use relay::Refusal;

use super::Proxy;

crate::support::wires::table! {
    (http1_upstreams, "the server has no connection, whatever its protocol"):
        name_without_an_address_is_answered_502;
    (cleartext, "the server in front accepts connections to a server that is down"):
        unreachable_upstream_is_answered_502;
}

fn unreachable_upstream_is_answered_502() {
    if Side::Upstreams.excludes("the server in front accepts connections to a server that is down") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::new(address);
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let body = client.until("}}");
    assert!(body.contains(r#""code":"upstream_unreachable""#), "{body}");
    assert!(body.contains("connection refused"), "{body}");
    assert_eq!(proxy.seen().refused, [Refusal::UpstreamUnreachable]);
    // A request without a body was read completely, so the connection stays open.
    client.send("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.contains("connection: keep-alive\r\n"), "{head}");
    client.until("}}");
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(client.head().is_some());
}

fn name_without_an_address_is_answered_502() {
    let proxy = Proxy::with("127.0.0.1:1".parse().unwrap(), |plan| {
        plan.upstreams[0].target = Target::new(Address::host("nowhere.invalid", 80), None);
        plan.connect_timeout = Duration::from_secs(8);
    });
    let mut client = proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.starts_with("HTTP/1.1 50"), "{head}");
}
