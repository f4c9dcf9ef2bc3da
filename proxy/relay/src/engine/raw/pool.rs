//! Connections to one upstream, and the idle ones among them, by the rules of [`net::pool`](crate::engine::net::pool).

use std::cell::RefCell;
use std::time::Duration;

use meter::Tick;

use super::upstream_socket::UpstreamSocket;
use crate::capacity::Permit;
use crate::engine::net::stream_rest::StreamRest;
use crate::{clock, limits};

/// A connection to an upstream, and its place among all sockets.
pub(super) struct Connection {
    pub(super) socket: UpstreamSocket,
    pub(super) place: Permit,
}

/// A connection without a request.
struct Idle {
    connection: Connection,
    since: Tick,
    /// True until a connection after a stream has rested.
    streamed: bool,
}

/// Idle connections, oldest first.
pub(super) struct Pool {
    idle: RefCell<Vec<Idle>>,
    size: usize,
    age_max_ns: u64,
    rest: StreamRest,
}

impl Pool {
    /// A pool of at most `size` idle connections, each idle for at most `age_max`.
    pub(super) fn new(size: usize, age_max: Duration) -> Self {
        let age_max_ns = u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX);
        Self { idle: RefCell::default(), size, age_max_ns, rest: StreamRest::default() }
    }

    /// Takes the connection that was used last, if it is open.
    pub(super) fn take(&self, now: Tick) -> Option<Connection> {
        let rest_ns = self.rest.rest_ns();
        loop {
            let mut idle = self.idle.borrow_mut();
            let rested =
                idle.iter().rposition(|entry| !entry.streamed || now.since(entry.since) >= rest_ns)?;
            let mut entry = idle.remove(rested);
            if self.is_usable(&mut entry, now) {
                return Some(entry.connection);
            }
        }
    }

    /// Returns a connection that is ready for another request. `streamed`: the length of its response was unknown when
    /// it began.
    pub(super) fn give(&self, mut connection: Connection, streamed: bool, now: Tick) {
        if self.size == 0 || streamed && self.rest.is_pointless(now) {
            return;
        }
        connection.place.charge(None);
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= self.size {
            idle.remove(0);
        }
        idle.push(Idle { connection, since: now, streamed });
    }

    /// Closes connections that are too old or were closed by the server.
    pub(super) fn sweep(&self) {
        let now = clock::now();
        self.idle.borrow_mut().retain_mut(|entry| self.is_usable(entry, now));
    }

    /// Returns true if an idle connection can carry another request.
    fn is_usable(&self, entry: &mut Idle, now: Tick) -> bool {
        let idle_ns = now.since(entry.since);
        if idle_ns >= self.age_max_ns {
            return false;
        }
        let asks_kernel = entry.streamed || idle_ns >= limits::CHECK_AFTER_NS;
        let alive = entry.connection.socket.is_open(asks_kernel);
        if entry.streamed && !alive {
            self.rest.note_closed(now);
        } else if entry.streamed && idle_ns >= limits::REST_AFTER_STREAM_NS {
            // If the server closes it later, it closes an idle connection.
            entry.streamed = false;
            self.rest.note_kept();
        }
        alive
    }
}
