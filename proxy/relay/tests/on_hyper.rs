//! The conformance tests on hyper.

use crate::support::Wires;

/// The wires under test.
pub(crate) enum UnderTest {}

impl Wires for UnderTest {}

#[path = "conformance/mod.rs"]
mod conformance;

#[path = "conformance_http1/mod.rs"]
mod conformance_http1;
