//! The three parties of a test (client, proxy, upstream), and waits with a deadline.

pub(crate) mod http2;
pub(crate) mod http2_front;
mod http2_gateway;
pub(crate) mod http2_server;
pub(crate) mod late_reader;
mod peer;
mod proxy;
pub(crate) mod tls;
mod upstream;
pub(crate) mod wires;

use std::time::{Duration, Instant};

pub(crate) use peer::{Peer, Wire};
pub(crate) use proxy::{Proxy, TestPlan, listen, observer, plan, secure, tcp};
pub(crate) use upstream::{Upstream, body as upstream_body};

/// The deadline of every wait of a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The time within which an upstream must see that the client has left.
pub(crate) const CANCEL: Duration = Duration::from_millis(100);

/// The time within which one try shows that an event is the cause: a busy machine delays it by less, and every timeout
/// that could be the cause is longer.
pub(crate) const PROMPT: Duration = Duration::from_secs(2);

/// Waits until `ready` returns true.
#[expect(clippy::disallowed_methods, reason = "a test's deadline is wall-clock")]
pub(crate) fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The current tick, for measuring.
#[expect(clippy::disallowed_methods, reason = "tests measure with the same clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
