//! Idle connections to one upstream, of one worker. The most recently used is taken first, so that the others reach
//! their maximum age. An idle connection is not polled: it is checked when it is taken, and by the sweep.
//!
//! Some servers (llama.cpp) close a connection after each stream without announcing it, and a request sent on the
//! closing socket is lost. A connection therefore rests after a stream, long enough for the close to arrive; for a
//! server that did so recently, each stream gets a new connection. A new connection costs 0.1 ms, a stream lasts
//! seconds.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use connect::Stream;
use meter::Tick;

use super::tunnel::UpstreamIo;
use crate::capacity::Permit;
use crate::engine::Connection;
use crate::holder::Holder;
use crate::{clock, limits};

/// Idle connections, oldest first.
pub(crate) struct Pool<C> {
    idle: RefCell<Vec<Idle<C>>>,
    size: usize,
    age_max_ns: u64,
    /// The last time that the server closed a connection after a stream.
    closed_after_stream: Cell<Option<Tick>>,
}

struct Idle<C> {
    connection: Box<PooledConnection<C>>,
    since: Tick,
    /// Its last response was a stream.
    streamed: bool,
}

/// A connection to an upstream, with its reserved places.
pub(crate) struct PooledConnection<C> {
    pub(crate) http: C,
    /// True if it carried a request before this one.
    pub(crate) is_reused: bool,
    /// Its reserved place among the upstream's active connections, while it carries a request.
    slot: Option<Permit>,
    /// Its reserved place among all sockets.
    place: Permit,
}

impl<C: Connection> PooledConnection<C> {
    /// A new connection with its place among all sockets.
    pub(crate) fn new(http: C, place: Permit) -> Self {
        Self { http, is_reused: false, slot: None, place }
    }

    /// Charges it to the holder of its next request.
    pub(crate) fn occupy(&mut self, slot: Permit, holder: Option<Arc<Holder>>) {
        self.slot = Some(slot);
        self.place.charge(holder);
    }

    /// Charges it to no holder while it is idle.
    fn release(&mut self) {
        self.slot = None;
        self.place.charge(None);
    }

    /// Takes the socket after the upstream switched protocols.
    pub(crate) async fn into_upstream_io(self) -> Option<UpstreamIo<Stream>> {
        let Self { http, slot, place, .. } = self;
        let (stream, first) = http.into_socket().await?;
        Some(UpstreamIo { stream, first, _places: (slot, place) })
    }
}

impl<C: Connection> Pool<C> {
    pub(crate) fn new(size: usize, age_max: Duration) -> Self {
        let age_max_ns = u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX);
        Self { idle: RefCell::default(), size, age_max_ns, closed_after_stream: Cell::new(None) }
    }

    /// Takes a connection that is still open, if there is one.
    pub(crate) fn take(&self) -> Option<Box<PooledConnection<C>>> {
        let now = clock::now();
        loop {
            let mut idle = self.idle.borrow_mut();
            let rested = idle.iter().rposition(|entry| {
                !entry.streamed || now.since(entry.since) >= limits::REST_AFTER_STREAM_NS
            })?;
            let mut entry = idle.remove(rested);
            drop(idle);
            if self.is_usable(&mut entry, now) {
                entry.connection.is_reused = true;
                return Some(entry.connection);
            }
        }
    }

    /// Returns a connection that is ready for another request; the oldest is dropped if the pool is full. `streamed`:
    /// the length of its response was unknown at its beginning.
    pub(crate) fn give(&self, mut connection: Box<PooledConnection<C>>, streamed: bool) {
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

    /// Closes connections that are too old or were closed by the server.
    pub(crate) fn sweep(&self) {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return;
        }
        let now = clock::now();
        idle.retain_mut(|entry| self.is_usable(entry, now));
    }

    /// Closes all connections.
    pub(crate) fn clear(&self) {
        self.idle.take();
    }

    fn is_usable(&self, entry: &mut Idle<C>, now: Tick) -> bool {
        if now.since(entry.since) >= self.age_max_ns {
            return false;
        }
        let alive = entry.connection.http.is_alive(&mut Context::from_waker(Waker::noop()));
        if !alive && entry.streamed {
            self.closed_after_stream.set(Some(now));
        }
        alive
    }
}
