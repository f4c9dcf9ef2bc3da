//! The conformance tests on hyper, with an upstream that speaks HTTP/2 over TLS.

use connect::Protocol;
use relay::EngineKind;

use crate::support::Engine;

/// The engine under test.
pub(crate) enum UnderTest {}

impl Engine for UnderTest {
    const KIND: EngineKind = EngineKind::Hyper;
    const UPSTREAM: Protocol = Protocol::Http2;
}

#[path = "conformance/mod.rs"]
mod conformance;

#[path = "conformance_http2/mod.rs"]
mod conformance_http2;
