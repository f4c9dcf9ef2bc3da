//! The tests that every engine must pass with an HTTP/2 server: streams, windows, ends of a connection, and servers that
//! violate the protocol. The parent module selects the engine.

mod ends;
mod hostile;
mod nghttpd;
mod streams;
mod windows;

use std::net::SocketAddr;

use crate::support::{Peer, secure};

/// The proxy on the engine under test, to a server that is reached directly.
type Proxy = crate::support::ProxyOn<Direct>;

/// The engine under test, with no server in front of the upstream.
pub(crate) enum Direct {}

impl crate::support::Engine for Direct {
    const KIND: relay::EngineKind = <super::UnderTest as crate::support::Engine>::KIND;
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

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
