//! The share of one client in what all clients share, and the time for which it may keep it unused.

use std::time::Duration;

/// The bounds of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Time for which a client may be silent within a request body, while the proxy waits for it.
    pub body_idle: Duration,
    /// Minimum bytes per second of a body, as the mean over the time in which the proxy waits for its client, after
    /// [`limits::RATE_GRACE_SWEEPS`](crate::limits::RATE_GRACE_SWEEPS) seconds of it.
    pub body_min_rate_bytes: u64,
    /// Maximum time in all for which the proxy waits for the client of a body, plus one second for each
    /// [`limits::SLOW_BYTES_PER_S`](crate::limits::SLOW_BYTES_PER_S) bytes.
    pub body_time: Duration,
    /// Time for which a client may read nothing of an answer that is ready for it.
    pub client_stall: Duration,
    /// Bytes of all buffered request bodies together.
    pub gather_room_bytes: usize,
    /// Connections to one upstream that carry a request, of all workers together.
    pub upstream_connections: usize,
    /// Open HTTP/2 streams on one client connection.
    pub h2_streams: u32,
    /// Sockets of clients and upstreams together; the process needs its other descriptors for other files.
    pub sockets: usize,
}
