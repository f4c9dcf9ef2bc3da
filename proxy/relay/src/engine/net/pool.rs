//! Idle connections to one upstream, of one worker. The most recently used is taken first, so that the others reach
//! their maximum age. An idle connection is not polled: it is checked when it is taken, and by the sweep.
//! After a stream, a connection rests before it is used again ([`StreamRest`]).
//!
//! Beside them are the shared connections, which need no rest: HTTP/2 announces the end of a connection, and requests
//! that meet it are sent again.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use connect::Stream;
use meter::Tick;

use super::body_waker::BodyWaker;
use super::shared_pool::SharedPool;
use super::stream_rest::StreamRest;
use super::tunnel::UpstreamIo;
use crate::capacity::Permit;
use crate::engine::{Connection, Opened};
use crate::holder::Holder;
use crate::{clock, limits};

/// Idle connections, oldest first, and shared ones.
pub(crate) struct Pool<C: Connection> {
    idle: RefCell<Vec<Idle<C>>>,
    pub(crate) shared: SharedPool<C::Shared>,
    size: usize,
    age_max_ns: u64,
    rest: StreamRest,
    /// True once the server demanded HTTP/1.1 although it had agreed on HTTP/2.
    pub(crate) needs_http1: Cell<bool>,
}

/// The connection that a request needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any.
    Any,
    /// One that carries no other request at the same time, because the server may close it.
    Unshared,
    /// One of HTTP/1.1.
    Http1,
}

struct Idle<C> {
    connection: Box<PooledConnection<C>>,
    since: Tick,
    /// Its last response was a stream, after which the server may still close it.
    streamed: bool,
}

/// A connection to an upstream, or a stream of a shared one, with its reserved places.
pub(crate) struct PooledConnection<C> {
    pub(crate) http: C,
    /// The waker with which it is driven for a request.
    pub(crate) waker: BodyWaker,
    /// True if the connection may have carried a request before this one.
    pub(crate) is_reused: bool,
    /// Its reserved place among the upstream's active connections, while it carries a request.
    slot: Option<Permit>,
    /// Its reserved place among all sockets; `None` of a stream, because the shared connection has it.
    place: Option<Permit>,
}

impl<C: Connection> PooledConnection<C> {
    /// A connection for its first request, with its place among all sockets.
    fn new(http: C, place: Option<Permit>) -> Box<Self> {
        Box::new(Self { http, waker: BodyWaker::default(), is_reused: false, slot: None, place })
    }

    /// Returns true if it has a socket of its own.
    pub(crate) fn has_socket(&self) -> bool {
        self.place.is_some()
    }

    /// Charges it to the holder of its next request.
    pub(crate) fn occupy(&mut self, slot: Permit, holder: Option<Arc<Holder>>) {
        self.slot = Some(slot);
        if let Some(place) = &mut self.place {
            place.charge(holder);
        }
    }

    /// Charges it to no holder while it is idle.
    fn release(&mut self) {
        self.waker.leave();
        self.slot = None;
        if let Some(place) = &mut self.place {
            place.charge(None);
        }
    }

    /// Takes the socket after the upstream switched protocols.
    pub(crate) async fn into_upstream_io(self) -> Option<UpstreamIo<Stream>> {
        let Self { http, slot, place, .. } = self;
        let (stream, first) = http.into_socket().await?;
        Some(UpstreamIo { stream, first, places: (slot, place?) })
    }
}

impl<C: Connection> Pool<C> {
    pub(crate) fn new(size: usize, age_max: Duration) -> Self {
        let age_max_ns = u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX);
        Self {
            idle: RefCell::default(),
            shared: SharedPool::new(),
            size,
            age_max_ns,
            rest: StreamRest::default(),
            needs_http1: Cell::new(false),
        }
    }

    /// Adds a new connection for a request, and takes it, or its first stream.
    pub(crate) fn add(&self, opened: Opened<C>, need: Need) -> Box<PooledConnection<C>> {
        match opened {
            Opened::Exclusive(http, place) => {
                self.shared.forget();
                PooledConnection::new(http, Some(place))
            }
            Opened::Shared(connection) => {
                let is_kept = need == Need::Any && self.size > 0;
                PooledConnection::new(self.shared.add(connection, is_kept), None)
            }
        }
    }

    /// Takes a connection that is still open, or a stream of one, if there is one.
    pub(crate) fn take(&self, need: Need) -> Option<Box<PooledConnection<C>>> {
        if need == Need::Any
            && let Some(stream) = self.shared.take()
        {
            let mut stream = PooledConnection::new(stream, None);
            stream.is_reused = true;
            return Some(stream);
        }
        let now = clock::now();
        loop {
            let mut idle = self.idle.borrow_mut();
            // Read each time: a connection that is found closed below changes it.
            let rest_ns = self.rest.rest_ns();
            let rested =
                idle.iter().rposition(|entry| !entry.streamed || now.since(entry.since) >= rest_ns)?;
            let mut entry = idle.remove(rested);
            // Before the check: the drop of a closed connection must not meet a borrowed pool.
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
        if self.size == 0 || streamed && self.rest.is_pointless(now) {
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
        let now = clock::now();
        self.idle.borrow_mut().retain_mut(|entry| self.is_usable(entry, now));
        self.shared.sweep(now, self.age_max_ns.saturating_mul(limits::H2_IDLE_FACTOR), self.size);
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.idle.take();
        self.shared.close_idle();
    }

    /// Closes all connections, those with streams after their last one.
    pub(crate) fn leave(&self) {
        self.idle.take();
        self.shared.leave();
    }

    fn is_usable(&self, entry: &mut Idle<C>, now: Tick) -> bool {
        if now.since(entry.since) >= self.age_max_ns {
            return false;
        }
        let mut unawaited = Context::from_waker(Waker::noop());
        let http = &mut entry.connection.http;
        // A server may close at any time after a stream, so only the kernel's present state counts. Otherwise the state
        // of the runtime's last poll suffices for a while, and costs no system call.
        let alive = if !entry.streamed && now.since(entry.since) < limits::CHECK_AFTER_NS {
            http.is_open(&mut unawaited)
        } else {
            http.is_alive(&mut unawaited)
        };
        if entry.streamed && !alive {
            self.rest.note_closed(now);
        } else if entry.streamed && now.since(entry.since) >= limits::REST_AFTER_STREAM_NS {
            // If the server closes it later, it closes an idle connection.
            entry.streamed = false;
            self.rest.note_kept();
        }
        alive
    }
}
