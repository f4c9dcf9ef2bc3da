//! The few numbers the data plane needs, as they will run. The data plane reads no configuration file.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use usage::Policy;

use crate::{EngineKind, Gate, RoleSource, ServerKind, Shares, Tracing};

/// One upstream and the address on which clients reach it.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Name as configured; a label.
    pub name: Arc<str>,
    /// The address on which the proxy listens for it. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// `host:port` to connect to, resolved anew for each connection.
    pub host: Arc<str>,
    /// Port to connect to.
    pub port: u16,
    /// Path put before every request's path: empty, or `/prefix` without a slash at its end.
    pub prefix: Arc<str>,
    /// The kind of server as configured; without it, what is found out counts.
    pub kind: Option<ServerKind>,
    /// `gen_ai.provider.name` as configured, or before a kind is found out.
    pub provider: Arc<str>,
    /// The policy by which streams are made to carry usage.
    pub usage: Policy,
    /// The source of its exchanges' roles.
    pub role: RoleSource,
}

/// Everything the data plane runs by.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The upstreams, each with a listener of its own.
    pub upstreams: Vec<Upstream>,
    /// The engine that carries the bytes.
    pub engine: EngineKind,
    /// The tenant rules in force.
    pub tenants: Arc<tenant::Live>,
    /// The tenants that are refused; `None` where no tenant ever is.
    pub gate: Option<Arc<Gate>>,
    /// True if requests that are answered here and make no record are reported all the same.
    pub report_rejections: bool,
    /// Models whose text can be counted in the control plane, where no server counts it.
    pub tokenized: Arc<HashSet<String>>,
    /// Worker threads, each with its own runtime and connections.
    pub workers: usize,
    /// The tracing of exchanges; `None` if no traces are exported, and then no request is touched.
    pub trace: Option<Tracing>,
    /// A gap longer than this between two tokens is a stall.
    pub stall: Duration,
    /// The most tokens one number of one exchange may claim; more is refused.
    pub tokens_max: u64,
    /// The time within which a connection to an upstream must be made.
    pub connect_timeout: Duration,
    /// The time within which a client must send a request head.
    pub head_timeout: Duration,
    /// Idle upstream connections older than this are closed: below uvicorn's 5 s.
    pub pool_idle: Duration,
    /// Idle upstream connections kept per worker and upstream.
    pub pool_size: usize,
    /// After a stop signal: how long new connections are still served.
    pub drain_delay: Duration,
    /// After that: how long streams may take to finish before they are cut.
    pub drain_grace: Duration,
    /// True if a client that closed its write side is still answered. Off: it counts as gone, as
    /// it does for the Python servers (uvicorn aborts on EOF).
    pub half_close: bool,
    /// True if work that would go on after its client left is kept from the upstreams: what it makes then
    /// reaches its client by another request, which is not metered.
    pub refuse_detached: bool,
    /// Concurrent client connections per worker; beyond it the one that is idle for longest gives way.
    pub connections: usize,
    /// The bounds of what one client may hold of what all share.
    pub shares: Shares,
}
