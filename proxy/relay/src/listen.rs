//! Listening sockets. Each worker has its own on every TCP address, and the kernel distributes connections among them
//! (`SO_REUSEPORT`); a Unix socket is shared by all workers.
//!
//! The workers share a port, but never with another process that listens there: that would silently take part of the
//! traffic. So the first bind of an address is made without `SO_REUSEPORT`, and fails if another process listens.

use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::conn::socket::Socket as ClientSocket;
use crate::{ListenAddress, limits};

/// A bound listener of one worker.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Arc<SocketFile>),
}

/// A listener that a worker polls.
pub(crate) enum Accepting {
    Tcp(tokio::net::TcpListener),
    Unix(
        tokio::net::UnixListener,
        #[expect(dead_code, reason = "removed with the last listener")] Arc<SocketFile>,
    ),
}

/// The file of a Unix socket; removed when the last listener is dropped, unless another process has replaced it.
pub(crate) struct SocketFile {
    path: Arc<Path>,
    inode: (u64, u64),
}

impl Listener {
    /// Begins to poll it, on the worker's thread.
    pub(crate) fn accepting(self) -> io::Result<Accepting> {
        Ok(match self {
            Self::Tcp(listener) => Accepting::Tcp(tokio::net::TcpListener::from_std(listener)?),
            Self::Unix(listener, file) => {
                Accepting::Unix(tokio::net::UnixListener::from_std(listener)?, file)
            }
        })
    }
}

impl Accepting {
    /// Accepts a connection; returns the address at its other end. A client on a Unix socket is on this machine.
    pub(crate) async fn accept(&self) -> io::Result<(ClientSocket, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((ClientSocket::Tcp(stream), peer))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((ClientSocket::Unix(stream), SocketAddr::new(UNIX_PEER, 0)))
            }
        }
    }
}

/// Binds one listener per worker, all on the same address; returns the address, too. Port 0 selects a free port for all
/// of them.
pub(crate) fn listen(address: &ListenAddress, workers: usize) -> io::Result<(ListenAddress, Vec<Listener>)> {
    match address {
        ListenAddress::Tcp(address) => {
            let listeners = listen_tcp(*address, workers)?;
            let bound = ListenAddress::Tcp(listeners[0].local_addr()?);
            Ok((bound, listeners.into_iter().map(Listener::Tcp).collect()))
        }
        ListenAddress::Unix { path, mode } => {
            let (listener, file) = listen_unix(path, *mode)?;
            let mut listeners = Vec::new();
            while listeners.len() < workers {
                listeners.push(Listener::Unix(listener.try_clone()?, Arc::clone(&file)));
            }
            Ok((address.clone(), listeners))
        }
    }
}

fn listen_tcp(mut address: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    if address.port() != 0 {
        tcp_socket(address, false)?;
    }
    let mut listeners = Vec::new();
    while listeners.len() < workers {
        let next = tcp_socket(address, true)?;
        next.listen(limits::BACKLOG)?;
        let next = TcpListener::from(next);
        // The first one selects a free port.
        address = next.local_addr()?;
        listeners.push(next);
    }
    Ok(listeners)
}

fn tcp_socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A port with last connections in TIME_WAIT is free.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Binds a Unix socket in place of one on which no process listens.
fn listen_unix(path: &Arc<Path>, mode: u32) -> io::Result<(UnixListener, Arc<SocketFile>)> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error),
        }
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let found = fs::symlink_metadata(path)?;
    let file = Arc::new(SocketFile { path: Arc::clone(path), inode: (found.dev(), found.ino()) });
    // Before the first client can connect.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(limits::BACKLOG)?;
    Ok((UnixListener::from(socket), file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.inode) {
            // Nothing is lost: the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The address of clients on Unix sockets, for the rules that compare addresses.
const UNIX_PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_one_port() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = listen_tcp(any, 3).unwrap();
        let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap().port()).collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0));
    }

    #[test]
    fn a_taken_port_is_found() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let taken = listen_tcp(any, 2).unwrap();
        let error = listen_tcp(taken[0].local_addr().unwrap(), 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn stale_unix_socket_is_replaced() {
        let path: Arc<Path> = std::env::temp_dir().join(format!("tokenmeter-{}", std::process::id())).into();
        drop(UnixListener::bind(&path).unwrap());
        let address = ListenAddress::Unix { path: Arc::clone(&path), mode: 0o600 };
        let (_, listeners) = listen(&address, 2).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let in_use = listen(&address, 1).err().unwrap();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).unwrap();
        drop(listeners);
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        assert!(listen(&address, 1).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
        fs::remove_file(&path).unwrap();
    }
}
