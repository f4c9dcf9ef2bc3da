//! Redirected connections: a rule of the kernel's NAT sent them to a listener, and their upstream is the one with the
//! port that the client addressed.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::SockRef;

use crate::Upstream;

/// Returns the upstream of a redirected connection; `None` if no upstream has the port that its client addressed, or if
/// it was not redirected: the port is then the listener's own.
pub(crate) fn upstream(upstreams: &[Upstream], socket: &impl AsFd, peer: SocketAddr) -> Option<usize> {
    let socket = SockRef::from(socket);
    // The kernel keeps an IPv4 connection as one of IPv4, also where an IPv6 listener took it.
    let original = match peer.ip().to_canonical().is_ipv4() {
        true => socket.original_dst_v4(),
        false => socket.original_dst_v6(),
    };
    let port = original.ok()?.as_socket()?.port();
    upstreams.iter().position(|upstream| upstream.target.address().port() == Some(port))
}
