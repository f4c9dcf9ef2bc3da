//! Idle connections to one upstream, of one worker, each of which carries one request at a time. The most recently used
//! is taken first, so that the others reach their maximum age. An idle connection is not polled: it is checked when it is
//! taken, and by the sweep. After a stream, a connection rests before it is used again ([`StreamRest`]).

use std::cell::RefCell;

use meter::Tick;

use super::stream_rest::StreamRest;
use super::upstream_socket::UpstreamSocket;
use crate::{clock, limits};

/// Idle connections, oldest first.
pub(crate) struct IdlePool {
    entries: RefCell<Vec<Entry>>,
    size: usize,
    age_max_ns: u64,
    rest: StreamRest,
}

struct Entry {
    connection: UpstreamSocket,
    since: Tick,
    /// Its last response was a stream, after which the server may still close it.
    streamed: bool,
}

impl IdlePool {
    /// A pool of at most `size` connections, each idle for at most this many nanoseconds.
    pub(crate) fn new(size: usize, age_max_ns: u64) -> Self {
        Self { entries: RefCell::default(), size, age_max_ns, rest: StreamRest::default() }
    }

    /// Takes a connection that is still open, if there is one.
    pub(crate) fn take(&self) -> Option<UpstreamSocket> {
        let now = clock::now();
        loop {
            let mut entries = self.entries.borrow_mut();
            // Read each time: a connection that is found closed below changes it.
            let rest_ns = self.rest.rest_ns();
            let rested =
                entries.iter().rposition(|entry| !entry.streamed || now.since(entry.since) >= rest_ns)?;
            let mut entry = entries.remove(rested);
            // Before the check: the drop of a closed connection must not meet a borrowed pool.
            drop(entries);
            if self.is_usable(&mut entry, now) {
                return Some(entry.connection);
            }
        }
    }

    /// Returns a connection that is ready for another request; the oldest is dropped if the pool is full. `streamed`:
    /// the length of its response was unknown at its beginning.
    pub(crate) fn give(&self, mut connection: UpstreamSocket, streamed: bool) {
        connection.charge(None);
        let now = clock::now();
        if self.size == 0 || streamed && self.rest.is_pointless(now) {
            return;
        }
        let mut entries = self.entries.borrow_mut();
        if entries.len() >= self.size {
            entries.remove(0);
        }
        entries.push(Entry { connection, since: now, streamed });
    }

    /// Closes connections that are too old or were closed by the server.
    pub(crate) fn sweep(&self) {
        let now = clock::now();
        self.entries.borrow_mut().retain_mut(|entry| self.is_usable(entry, now));
    }

    /// Closes all connections.
    pub(crate) fn clear(&self) {
        self.entries.take();
    }

    fn is_usable(&self, entry: &mut Entry, now: Tick) -> bool {
        let idle_ns = now.since(entry.since);
        if idle_ns >= self.age_max_ns {
            return false;
        }
        // A server may close at any time after a stream, so only the kernel's present state counts. Otherwise the state
        // of the runtime's last poll suffices for a while, and costs no system call.
        let alive = entry.connection.is_usable(entry.streamed || idle_ns >= limits::CHECK_AFTER_NS);
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
