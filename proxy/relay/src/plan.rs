//! The effective settings of the data plane. The data plane reads no configuration file.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use connect::Target;
use rustls::ServerConfig;
use usage::Policy;

use crate::{RoleSource, ServerKind, Shares, Tracing};

/// One upstream and the listeners by which clients reach it.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Name as configured; a label.
    pub name: Arc<str>,
    /// The listeners of the proxy for it.
    pub listen: Vec<Listen>,
    /// The server, and how it is reached.
    pub target: Target,
    /// The `Host` of every request; `None` forwards the client's.
    pub authority: Option<Arc<str>>,
    /// Prefix of every request's path: empty, or `/prefix` without a slash at its end.
    pub prefix: Arc<str>,
    /// The kind of server as configured; `None` to detect it.
    pub kind: Option<ServerKind>,
    /// `gen_ai.provider.name` as configured, or until a kind is detected.
    pub provider: Arc<str>,
    /// The policy by which usage is requested in streams.
    pub usage: Policy,
    /// The source of its exchanges' roles.
    pub role: RoleSource,
}

/// One listener.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Its address.
    pub address: ListenAddress,
    /// The current TLS configuration; `None` if clients do not use TLS. A new one applies to new connections.
    pub tls: Option<Arc<ArcSwap<ServerConfig>>>,
    /// True if each connection begins with a header of the PROXY protocol, in which a trusted peer names the client.
    pub proxy_protocol: bool,
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a TCP port; port 0 selects a free one.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix {
        /// The path of its file.
        path: Arc<Path>,
        /// The permission bits of the file.
        mode: u32,
    },
}

impl ListenAddress {
    /// The address, unless it is that of a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix { .. } => None,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The effective settings of the data plane.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The upstreams; each has listeners of its own.
    pub upstreams: Vec<Upstream>,
    /// True if requests that the proxy answers and that make no record are reported.
    pub report_rejections: bool,
    /// Models with a tokenizer in the control plane, for servers that report no count.
    pub tokenized: Arc<HashSet<String>>,
    /// Worker threads, each with its own runtime and connections.
    pub workers: usize,
    /// The tracing of exchanges; `None` if no traces are exported: then header fields stay unchanged.
    pub trace: Option<Tracing>,
    /// A gap longer than this between two tokens is a stall.
    pub stall: Duration,
    /// The maximum of one token count of one exchange; a greater one is rejected.
    pub tokens_max: u64,
    /// The time limit for connecting to an upstream.
    pub connect_timeout: Duration,
    /// The time limit for a client to send a request head.
    pub head_timeout: Duration,
    /// The maximum idle time of upstream connections: below uvicorn's 5 s. With HTTP/2, a
    /// [multiple](crate::limits::H2_IDLE_FACTOR) of it.
    pub pool_idle: Duration,
    /// Idle upstream connections kept per worker and upstream, of each HTTP version.
    pub pool_size: usize,
    /// The time after a stop signal in which new connections are still served.
    pub drain_delay: Duration,
    /// The time after that in which streams may finish before they are cut.
    pub drain_grace: Duration,
    /// True if a client that closed its write side still gets its answer. If false, it counts as gone, as it does for
    /// the Python servers (uvicorn aborts on EOF).
    pub half_close: bool,
    /// True if requests carry their client's address, protocol and host (`Forwarded`, `X-Forwarded-*`).
    pub forwards: bool,
    /// True if requests whose work would continue after their client left are rejected: their client gets the output by
    /// another request, which is not metered.
    pub refuse_detached: bool,
    /// True if every connection to a TCP listener without TLS is redirected: its upstream is the one with the port
    /// that its client addressed.
    pub transparent: bool,
    /// Maximum client connections per worker; beyond it the one that is idle for longest is closed.
    pub connections: usize,
    /// The bounds of what one client may use of shared capacities.
    pub shares: Shares,
}
