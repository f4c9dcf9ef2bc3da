//! The tests that every engine must pass: the bytes on either side, cancellation, limits and the drain. The parent
//! module selects the engine and the protocol of the upstream.

mod bodies;
mod cancel;
mod drain;
mod dripping;
mod gather;
mod http2;
mod interim;
mod left;
mod panic;
mod readers;
mod refusals;
mod shares;
mod slow;
mod stalled_readers;
mod upgrade;

/// The proxy on the engine under test.
type Proxy = crate::support::ProxyOn<super::UnderTest>;

#[test]
fn proxy_runs_on_the_named_engine() {
    let upstream = crate::support::Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let named = <super::UnderTest as crate::support::Engine>::KIND;
    Proxy::with(upstream.address, |plan| assert_eq!(plan.engine, named));
}
