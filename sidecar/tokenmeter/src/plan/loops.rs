//! Finds upstreams that are the process' own listeners. Forwarding to one would multiply a request until the
//! machine is out of sockets, so such a plan does not start.

use std::net::{IpAddr, SocketAddr};

use connect::Address;

use crate::plan::machine::Machine;

/// Returns the first of `own` that a connection to `server` reaches. Port 0 in `own` matches nothing: the port is not
/// known yet.
pub(crate) fn reaches<'a>(
    machine: &dyn Machine,
    server: &Address,
    own: impl Iterator<Item = &'a SocketAddr>,
) -> Option<SocketAddr> {
    let Address::Host { host, port } = server else { return None };
    let mut candidates = own.filter(|address| address.port() == *port && *port != 0).peekable();
    candidates.peek()?;
    let targets = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => machine.resolve(host),
    };
    candidates.find(|own| targets.iter().any(|target| same(machine, *target, own.ip()))).copied()
}

/// Returns true if a connection to `target` reaches a listener on `own` of the same port. The unspecified address is
/// this machine as a target, and every address of it as a listener; where address families differ, the result is true.
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
