//! The part of what all clients share that one of them may hold, and the time for which it may keep it unused.

use std::time::Duration;

/// The bounds of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Time for which a client may be silent within a request body that is waited for.
    pub body_idle: Duration,
    /// The least bytes per second of a body, on the mean of the time in which its client is waited for, after
    /// [`limits::RATE_GRACE_SWEEPS`](crate::limits::RATE_GRACE_SWEEPS) seconds of it.
    pub body_min_rate_bytes: u64,
    /// Time for which the client of a body may be waited for in all, and one second more for each
    /// [`limits::SLOW_BYTES_PER_S`](crate::limits::SLOW_BYTES_PER_S) bytes.
    pub body_time: Duration,
    /// Time for which a client may take nothing of an answer that is ready for it.
    pub client_stall: Duration,
    /// Bytes of all request bodies together that are gathered.
    pub gather_room_bytes: usize,
    /// Connections to one upstream that carry a request, of all workers together.
    pub upstream_connections: usize,
    /// HTTP/2 streams open at once on one client connection.
    pub h2_streams: u32,
    /// Sockets of clients and upstreams together; the rest of the process' descriptors is for others.
    pub sockets: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            body_idle: Duration::from_secs(30),
            body_min_rate_bytes: 128,
            body_time: Duration::from_secs(300),
            client_stall: Duration::from_secs(120),
            gather_room_bytes: 64 * 1024 * 1024,
            upstream_connections: 4096,
            h2_streams: 256,
            sockets: usize::MAX,
        }
    }
}
