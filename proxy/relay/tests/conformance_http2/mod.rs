//! The tests that must pass on all wires with an HTTP/2 server: streams, windows, ends of a connection, and servers that
//! violate the protocol.

mod ends;
mod hostile;
mod nghttpd;
mod streams;
mod windows;

use std::net::SocketAddr;

use crate::support::{Peer, secure};

use crate::support::Proxy;

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

const CHAT: &str =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}";

/// A proxy to an HTTP/2 server.
fn proxy(server: SocketAddr) -> Proxy {
    Proxy::with(server, |plan| plan.upstreams[0].target = secure(server))
}

/// Sends a request and reads the whole answer, of the length that its head announces or in one chunk.
fn ask(client: &mut Peer, request: &str) -> (String, String) {
    client.send(request);
    let head = client.head().unwrap();
    let body = crate::support::upstream_body(client, &head);
    (head, String::from_utf8(body).unwrap())
}
