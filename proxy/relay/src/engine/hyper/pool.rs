//! Idle connections to one upstream, of one worker. The most recently used is taken first, so that
//! the others age and go. Nobody polls an idle connection: it is looked at when taken, and swept.
//!
//! Some servers (llama.cpp) close a connection after each stream without saying so, and a request
//! that meets the closing socket is lost. Such a connection therefore rests before it is used
//! again, long enough for the close to arrive; a server that was seen to do it gets a fresh
//! connection after each stream for a while. A fresh connection costs a tenth of a millisecond, a
//! stream lasts seconds.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};
use std::time::Duration;

use meter::Tick;

use super::connection::Connection;
use crate::{clock, limits};

/// Idle connections, oldest first.
pub(super) struct Pool {
    idle: RefCell<Vec<Idle>>,
    size: usize,
    age_max_ns: u64,
    /// When the server was last seen to close a connection after a stream.
    closed_after_stream: Cell<Option<Tick>>,
}

struct Idle {
    connection: Box<Connection>,
    since: Tick,
    /// Its last response was a stream.
    streamed: bool,
}

impl Pool {
    pub(super) fn new(size: usize, age_max: Duration) -> Self {
        let age_max_ns = u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX);
        Self { idle: RefCell::default(), size, age_max_ns, closed_after_stream: Cell::new(None) }
    }

    /// A connection that is still alive, if there is one.
    pub(super) fn take(&self) -> Option<Box<Connection>> {
        let now = clock::now();
        loop {
            let mut idle = self.idle.borrow_mut();
            let rested = idle.iter().rposition(|entry| {
                !entry.streamed || now.since(entry.since) >= limits::REST_AFTER_STREAM_NS
            })?;
            let mut entry = idle.remove(rested);
            drop(idle);
            if self.is_usable(&mut entry, now) {
                entry.connection.reused = true;
                return Some(entry.connection);
            }
        }
    }

    /// Keeps a connection that is ready for another request; the oldest makes room. `streamed`:
    /// its response had no length that was known at its beginning.
    pub(super) fn give(&self, mut connection: Box<Connection>, streamed: bool) {
        connection.release();
        let now = clock::now();
        let closes = self.closed_after_stream.get();
        let closes = closes.is_some_and(|seen| now.since(seen) < limits::CLOSING_REMEMBERED_NS);
        if self.size == 0 || streamed && closes {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= self.size {
            idle.remove(0);
        }
        idle.push(Idle { connection, since: now, streamed });
    }

    /// Closes what is too old, or was closed at the other end.
    pub(super) fn sweep(&self) {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return;
        }
        let now = clock::now();
        idle.retain_mut(|entry| self.is_usable(entry, now));
    }

    /// Closes all.
    pub(super) fn clear(&self) {
        self.idle.take();
    }

    fn is_usable(&self, entry: &mut Idle, now: Tick) -> bool {
        if now.since(entry.since) >= self.age_max_ns {
            return false;
        }
        let alive = entry.connection.is_alive(&mut Context::from_waker(Waker::noop()));
        if !alive && entry.streamed {
            self.closed_after_stream.set(Some(now));
        }
        alive
    }
}
