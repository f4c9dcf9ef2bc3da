//! The conformance tests on hyper, with TLS between the client and the proxy.

use crate::support::Wires;

/// The wires under test.
pub(crate) enum UnderTest {}

impl Wires for UnderTest {
    const TLS: bool = true;
}

#[path = "conformance/mod.rs"]
mod conformance;
