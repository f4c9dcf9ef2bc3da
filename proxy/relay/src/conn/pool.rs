//! The connections of one worker to one upstream that a request may take: idle ones, and shared ones, which need no rest
//! after a stream: HTTP/2 announces the end of a connection, and requests that meet it are sent again.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::idle::IdlePool;
use super::shared_pool::SharedPool;
use super::upstream_socket::UpstreamSocket;
use crate::limits;
use crate::wire::h2::waiting::Place;

/// Idle connections, and shared ones.
pub(crate) struct Pool {
    pub(crate) idle: Rc<IdlePool>,
    pub(crate) shared: SharedPool,
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

/// A connection for one request.
pub(crate) enum Transport {
    /// A socket of its own, with HTTP/1.1.
    Socket(UpstreamSocket),
    /// A place on a connection that others share, with HTTP/2.
    Stream(Place),
}

impl Pool {
    /// A pool of at most `size` idle connections of each kind: sockets for at most `age_max`, shared connections for a
    /// multiple of it.
    pub(crate) fn new(size: usize, age_max: Duration) -> Self {
        let age_max_ns = u64::try_from(age_max.as_nanos()).unwrap_or(u64::MAX);
        Self {
            idle: Rc::new(IdlePool::new(size, age_max_ns)),
            shared: SharedPool::new(size, age_max_ns.saturating_mul(limits::H2_IDLE_FACTOR)),
            needs_http1: Cell::new(false),
        }
    }

    /// Takes a connection that is still open, or a place on one, if there is one.
    pub(crate) fn take(&self, need: Need) -> Option<Transport> {
        let place = (need == Need::Any).then(|| self.shared.take()).flatten();
        place.map(Transport::Stream).or_else(|| self.idle.take().map(Transport::Socket))
    }

    /// Closes connections that are too old or were closed by the server.
    pub(crate) fn sweep(&self) {
        self.idle.sweep();
        self.shared.sweep();
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.idle.clear();
        self.shared.close_idle();
    }

    /// Closes all connections, those with streams after their last one.
    pub(crate) fn leave(&self) {
        self.idle.clear();
        self.shared.leave();
    }
}
