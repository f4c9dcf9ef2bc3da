//! The conformance tests on hyper, with TLS between the client and the proxy.

use relay::EngineKind;

use crate::support::Engine;

/// The engine under test.
pub(crate) enum UnderTest {}

impl Engine for UnderTest {
    const KIND: EngineKind = EngineKind::Hyper;
    const TLS: bool = true;
}

#[path = "conformance/mod.rs"]
mod conformance;
