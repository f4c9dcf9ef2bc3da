//! Finds redirect rules that send tokenmeter's own connections back to its listener. Each request would loop until the
//! machine is out of sockets, so such a process does not start.

use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use connect::Address;

use super::probe::Target;
use super::start_error::StartError;

/// Connects to each upstream while tokenmeter's listeners are open for a moment: none may get the connection.
pub(super) fn refuse(
    targets: &[Target],
    listeners: impl Iterator<Item = SocketAddr>,
) -> Result<(), StartError> {
    // One that cannot be bound is reported when the data plane binds it.
    let listeners = listeners.filter_map(|address| TcpListener::bind(address).ok());
    let listeners: Vec<_> = listeners.filter(|listener| listener.set_nonblocking(true).is_ok()).collect();
    for target in targets {
        let Address::Host { host, port } = target.server.address() else { continue };
        let Ok(addresses) = (&**host, *port).to_socket_addrs() else { continue };
        for address in addresses {
            // A server that is not there yet, or is slow, is not this process.
            let Ok(probe) = TcpStream::connect_timeout(&address, CONNECT_TIME) else { continue };
            let Ok(own) = probe.local_addr() else { continue };
            let is_own = |peer: SocketAddr| {
                (peer.ip().to_canonical(), peer.port()) == (own.ip().to_canonical(), own.port())
            };
            let accepted = |listener: &TcpListener| {
                std::iter::from_fn(|| listener.accept().ok()).any(|(_, peer)| is_own(peer))
            };
            if listeners.iter().any(accepted) {
                let uid = std::fs::metadata("/proc/self").map_or(0, |process| process.uid());
                return Err(StartError::Redirected { url: target.url.clone(), uid });
            }
        }
    }
    Ok(())
}

/// The time limit of a connection to an upstream of this pod.
const CONNECT_TIME: Duration = Duration::from_millis(500);
