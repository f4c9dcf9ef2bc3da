//! The relay over real sockets: a scripted upstream, a raw client, the proxy between them.
//!
//! The contents page. Everything waits for what it expects, with a deadline; nothing sleeps and
//! hopes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

mod detached;
mod gate;
mod metering;
mod on_hyper;
mod paying;
mod priced;
mod reading;
mod rejections;
mod reported;
mod roles;
mod running;
mod spelling;
mod start;
mod tenants;
mod terms;
mod trace;
mod uncounted;
mod usage;

use relay::EngineKind;

/// The engines on which the conformance cases run, each in a module of its own.
const ENGINES: &[EngineKind] = &[<on_hyper::UnderTest as support::Engine>::KIND];

#[test]
fn every_engine_is_under_test() {
    assert_eq!(ENGINES, EngineKind::ALL);
}
