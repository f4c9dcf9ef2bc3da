//! The reason why a connection failed. Its text is for the log, for readiness and for the client.

use std::fmt;
use std::io;

use crate::fault::TlsFault;
use crate::http_proxy::ProxyFault;

/// A step of a connection, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The name is resolved.
    Resolve,
    /// The socket is connected.
    Connect,
    /// The proxy opens a tunnel.
    Proxy,
    /// The TLS handshake.
    Handshake,
}

impl Step {
    /// The text of a limit that passed.
    fn late(self) -> &'static str {
        match self {
            Self::Resolve => "its name was not resolved in time",
            Self::Connect => "it did not accept a connection in time",
            Self::Proxy => "its proxy did not open a tunnel in time",
            Self::Handshake => "it did not finish the TLS handshake in time; if it has no TLS, write http://",
        }
    }
}

/// The reason why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The time limit passed during this step.
    #[error("{}", .0.late())]
    Timeout(Step),
    /// The process has no descriptor or memory for another socket.
    #[error("this process has no free file descriptor or memory for a socket")]
    Exhausted,
    /// The name has no address.
    #[error("its name has no address: {0}")]
    Name(io::Error),
    /// No address accepted a connection.
    #[error(fmt = socket_error)]
    Io(io::Error),
    /// The server's certificate is not accepted.
    #[error("{0}")]
    Certificate(TlsFault),
    /// The TLS handshake failed.
    #[error("{0}")]
    Tls(TlsFault),
    /// The proxy in between opened no tunnel.
    #[error("{0}")]
    Proxy(ProxyFault),
}

impl ConnectError {
    /// Classifies an error of a socket.
    pub(crate) fn of(error: io::Error) -> Self {
        if is_exhausted(&error) { Self::Exhausted } else { Self::Io(error) }
    }

    /// Classifies an error of a TLS handshake with the server of this name.
    pub(crate) fn of_handshake(error: &io::Error, server: &str) -> Self {
        let fault = TlsFault::of(error, server);
        if fault.is_of_certificate() { Self::Certificate(fault) } else { Self::Tls(fault) }
    }
}

/// Returns true if the process, or the machine, is out of descriptors or memory.
fn is_exhausted(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}

/// Writes the usual errors without the number of the system.
fn socket_error(error: &io::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => f.write_str("connection refused"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => f.write_str("no route"),
        io::ErrorKind::TimedOut => f.write_str("timed out"),
        io::ErrorKind::ConnectionReset => f.write_str("connection reset"),
        _ => fmt::Display::fmt(error, f),
    }
}
