//! The effective settings of the data plane. The data plane reads no configuration file.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use connect::Target;
use usage::Policy;

use crate::{EngineKind, Gate, RoleSource, ServerKind, Shares, Tracing};

/// One upstream and the address on which clients reach it.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Name as configured; a label.
    pub name: Arc<str>,
    /// The address on which the proxy listens for it. Port 0 selects a free one.
    pub listen: SocketAddr,
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

/// The effective settings of the data plane.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The upstreams; each has a listener of its own.
    pub upstreams: Vec<Upstream>,
    /// The engine that carries the bytes.
    pub engine: EngineKind,
    /// The current tenant rules.
    pub tenants: Arc<tenant::Live>,
    /// The rejected tenants; `None` if budgets are not enforced.
    pub gate: Option<Arc<Gate>>,
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
    /// True if requests whose work would continue after their client left are rejected: their client gets the output by
    /// another request, which is not metered.
    pub refuse_detached: bool,
    /// True if every connection is redirected: its upstream is the one with the port that its client addressed.
    pub transparent: bool,
    /// Maximum client connections per worker; beyond it the one that is idle for longest is closed.
    pub connections: usize,
    /// The bounds of what one client may use of shared capacities.
    pub shares: Shares,
}
