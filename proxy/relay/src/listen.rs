//! Listening sockets: each worker has its own on every address, and the kernel distributes connections among them
//! (`SO_REUSEPORT`).
//!
//! The workers share a port, but never with another process that listens there: that would silently take part of the
//! traffic. So the first bind of an address is made without `SO_REUSEPORT`, and fails if another process listens.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use crate::limits;

/// Binds one listener per worker, all on the same address. Port 0 selects a free port for all of them.
pub(crate) fn listen(address: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    if address.port() != 0 {
        socket(address, false)?;
    }
    let first = socket(address, true)?;
    first.listen(limits::BACKLOG)?;
    let first = TcpListener::from(first);
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    while listeners.len() < workers {
        let next = socket(address, true)?;
        next.listen(limits::BACKLOG)?;
        listeners.push(TcpListener::from(next));
    }
    Ok(listeners)
}

fn socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A port with last connections in TIME_WAIT is free.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_one_port() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = listen(any, 3).unwrap();
        let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap().port()).collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0));
    }

    #[test]
    fn a_taken_port_is_found() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let taken = listen(any, 2).unwrap();
        let error = listen(taken[0].local_addr().unwrap(), 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
