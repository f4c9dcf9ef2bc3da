//! The three parties of a test, and patience.

pub(crate) mod http2;
mod peer;
mod proxy;
mod upstream;

use std::time::{Duration, Instant};

pub(crate) use peer::Peer;
pub(crate) use proxy::{Engine, Proxy, ProxyOn, observer, plan};
pub(crate) use upstream::{Upstream, body as upstream_body};

/// How long anything may take before a test gives up on it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// How soon an upstream has to learn that the client is gone.
pub(crate) const CANCEL: Duration = Duration::from_millis(100);

/// Waits until `ready` says so.
#[expect(clippy::disallowed_methods, reason = "a test's deadline is wall-clock")]
pub(crate) fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The time now, for measuring.
#[expect(clippy::disallowed_methods, reason = "a test measures by the same clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
