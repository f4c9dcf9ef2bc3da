//! The address of a server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Host {
        /// Name or address; an IPv6 address without brackets.
        host: Arc<str>,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix(Arc<Path>),
}

impl Address {
    /// The address of a TCP port.
    pub fn host(host: &str, port: u16) -> Self {
        Self::Host { host: host.into(), port }
    }

    /// Returns the TCP port; `None` of a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Host { port, .. } => Some(*port),
            Self::Unix(_) => None,
        }
    }

    /// Returns the value of a `Host` field: `HOST:PORT`, an IPv6 address in brackets; `localhost` for a Unix socket.
    pub fn authority(&self) -> String {
        match self {
            Self::Host { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Host { host, port } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Returns the server's name for messages: its host, or the path of its socket.
    pub fn name(&self) -> Arc<str> {
        match self {
            Self::Host { host, .. } => Arc::clone(host),
            Self::Unix(path) => path.to_string_lossy().into(),
        }
    }
}

/// Writes `HOST:PORT` or `unix:PATH`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { .. } => f.write_str(&self.authority()),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
