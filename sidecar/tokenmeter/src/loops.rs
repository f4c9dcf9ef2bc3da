//! Finds an upstream that is ourselves. Forwarding to our own listener would multiply one request
//! until the machine is out of sockets, so such a plan does not start.

use std::net::{IpAddr, SocketAddr};

use crate::machine::Machine;

/// The first of `own` that connecting to `host:port` would reach. Port 0 in `own` matches nothing:
/// no port is known yet.
pub(crate) fn reaches<'a>(
    machine: &dyn Machine,
    host: &str,
    port: u16,
    own: impl Iterator<Item = &'a SocketAddr>,
) -> Option<SocketAddr> {
    let mut candidates = own.filter(|address| address.port() == port && port != 0).peekable();
    candidates.peek()?;
    let targets = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => machine.resolve(host),
    };
    candidates.find(|own| targets.iter().any(|target| same(machine, *target, own.ip()))).copied()
}

/// Whether connecting to `target` ends at a listener on `own`, the ports being equal. "Any
/// address" as a target is this machine, and as a listener it takes every address of it; where
/// families differ we would rather refuse.
fn same(machine: &dyn Machine, target: IpAddr, own: IpAddr) -> bool {
    let (target, own) = (target.to_canonical(), own.to_canonical());
    match (target.is_unspecified(), own.is_unspecified()) {
        (true, true) => true,
        (true, false) => own.is_loopback(),
        (false, true) => target.is_loopback() || machine.owns(target),
        (false, false) => target == own,
    }
}

#[cfg(test)]
#[path = "loops_tests.rs"]
mod tests;
