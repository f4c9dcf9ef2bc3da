//! The conformance tests on hyper, with an upstream that speaks HTTP/2 over TLS.

use crate::support::Wires;
use connect::Protocol;

/// The wires under test.
pub(crate) enum UnderTest {}

impl Wires for UnderTest {
    const UPSTREAM: Protocol = Protocol::Http2;
}

#[path = "conformance/mod.rs"]
mod conformance;

#[path = "conformance_http2/mod.rs"]
mod conformance_http2;
