//! The conformance tests on hyper.

use relay::EngineKind;

use crate::support::Engine;

/// The engine under test.
pub(crate) enum UnderTest {}

impl Engine for UnderTest {
    const KIND: EngineKind = EngineKind::Hyper;
}

#[path = "conformance/mod.rs"]
mod conformance;

#[path = "conformance_http1/mod.rs"]
mod conformance_http1;
