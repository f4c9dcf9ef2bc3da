//! The addresses of the upstreams, for the convention's `server.address` and `server.port`.

use std::sync::Arc;

/// An upstream and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name, as in records.
    pub name: Arc<str>,
    /// The name or address of its host, or the path of its Unix socket.
    pub host: Arc<str>,
    /// Its port; `None` of a Unix socket.
    pub port: Option<u16>,
}

/// The address of a server. Two upstreams may share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: Arc<str>,
    pub(crate) port: Option<u16>,
}

impl Address {
    /// Returns the address of the upstream with this name, if it is configured.
    pub(crate) fn of(upstreams: &[Upstream], name: &str) -> Option<Self> {
        let upstream = upstreams.iter().find(|upstream| *upstream.name == *name)?;
        Some(Self { host: Arc::clone(&upstream.host), port: upstream.port })
    }
}
