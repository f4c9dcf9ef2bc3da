//! The connections of one worker to one upstream that a request may take: idle ones, and shared ones, which need no rest
//! after a stream: HTTP/2 announces the end of a connection, and requests that meet it are sent again.

use std::cell::Cell;
#[cfg(feature = "spike-engine")]
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use connect::Stream;

use super::body_waker::BodyWaker;
use super::idle::{Idle, IdlePool};
use super::shared_pool::SharedPool;
use super::tunnel::UpstreamIo;
use crate::capacity::Permit;
use crate::carry::upload::Upload;
use crate::engine::hyper::{Http2Connection, Http2Stream, HyperConnection, Opened, Place};
use crate::holder::Holder;
#[cfg(feature = "spike-engine")]
use crate::wire::h1::upstream_socket::UpstreamSocket;
use crate::{clock, limits};

/// Idle connections, and shared ones.
pub(crate) struct Pool {
    idle: IdlePool<Box<PooledConnection>>,
    /// Idle connections of the trial.
    #[cfg(feature = "spike-engine")]
    pub(crate) sockets: Rc<IdlePool<UpstreamSocket>>,
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

/// A connection that the trial uses.
#[cfg(feature = "spike-engine")]
pub(crate) enum Transport {
    /// A socket of its own, with HTTP/1.1.
    Socket(UpstreamSocket),
    /// A place on a connection that others share, with HTTP/2.
    Stream(Place),
}

/// A connection to an upstream, or a stream of a shared one, with its reserved places.
pub(crate) struct PooledConnection {
    pub(crate) http: HyperConnection<Upload>,
    /// The waker with which it is driven for a request.
    pub(crate) waker: BodyWaker,
    /// True if the connection may have carried a request before this one.
    pub(crate) is_reused: bool,
    /// Its reserved place among the upstream's active connections, while it carries a request.
    slot: Option<Permit>,
    /// Its reserved place among all sockets; `None` of a stream, because the shared connection has it.
    place: Option<Permit>,
}

impl PooledConnection {
    /// A connection for its first request, with its place among all sockets.
    fn new(http: HyperConnection<Upload>, place: Option<Permit>) -> Box<Self> {
        Box::new(Self { http, waker: BodyWaker::default(), is_reused: false, slot: None, place })
    }

    /// A stream of a shared connection.
    fn stream(place: Place) -> Box<Self> {
        Self::new(HyperConnection::Http2(Http2Stream::new(place)), None)
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

    /// Takes the socket after the upstream switched protocols.
    pub(crate) async fn into_upstream_io(self) -> Option<UpstreamIo<Stream>> {
        let Self { http, slot, place, .. } = self;
        let (stream, first) = http.into_socket().await?;
        Some(UpstreamIo { stream, first, places: (slot, place?) })
    }
}

impl Idle for Box<PooledConnection> {
    fn is_usable(&mut self, asks_kernel: bool) -> bool {
        let mut unawaited = Context::from_waker(Waker::noop());
        if asks_kernel { self.http.is_alive(&mut unawaited) } else { self.http.is_open(&mut unawaited) }
    }

    fn release(&mut self) {
        self.waker.leave();
        self.slot = None;
        if let Some(place) = &mut self.place {
            place.charge(None);
        }
    }
}

impl Pool {
    pub(crate) fn new(size: usize, age_max: Duration) -> Self {
        Self {
            idle: IdlePool::new(size, age_max),
            #[cfg(feature = "spike-engine")]
            sockets: Rc::new(IdlePool::new(size, age_max)),
            shared: SharedPool::new(),
            needs_http1: Cell::new(false),
        }
    }

    /// Adds a new connection for a request, and takes it, or its first stream.
    pub(crate) fn add(&self, opened: Opened<Upload>, need: Need) -> Box<PooledConnection> {
        match opened {
            Opened::Exclusive(http, place) => {
                self.shared.forget();
                PooledConnection::new(http, Some(place))
            }
            Opened::Shared(connection) => PooledConnection::stream(self.add_shared(connection, need)),
        }
    }

    /// Adds a new shared connection for a request, and takes its first place.
    pub(crate) fn add_shared(&self, connection: Http2Connection, need: Need) -> Place {
        let is_kept = need == Need::Any && self.idle.bounds().0 > 0;
        self.shared.add(connection, is_kept)
    }

    /// Takes a connection that is still open, or a place on one, if there is one.
    #[cfg(feature = "spike-engine")]
    pub(crate) fn take_transport(&self, need: Need) -> Option<Transport> {
        let place = (need == Need::Any).then(|| self.shared.take()).flatten();
        place.map(Transport::Stream).or_else(|| self.sockets.take().map(Transport::Socket))
    }

    /// Takes a connection that is still open, or a stream of one, if there is one.
    pub(crate) fn take(&self, need: Need) -> Option<Box<PooledConnection>> {
        if need == Need::Any
            && let Some(place) = self.shared.take()
        {
            let mut stream = PooledConnection::stream(place);
            stream.is_reused = true;
            return Some(stream);
        }
        let mut connection = self.idle.take()?;
        connection.is_reused = true;
        Some(connection)
    }

    /// Returns a connection that is ready for another request; the oldest is dropped if the pool is full. `streamed`:
    /// the length of its response was unknown at its beginning.
    pub(crate) fn give(&self, connection: Box<PooledConnection>, streamed: bool) {
        self.idle.give(connection, streamed);
    }

    /// Closes connections that are too old or were closed by the server.
    pub(crate) fn sweep(&self) {
        self.idle.sweep();
        #[cfg(feature = "spike-engine")]
        self.sockets.sweep();
        let (size, age_max_ns) = self.idle.bounds();
        self.shared.sweep(clock::now(), age_max_ns.saturating_mul(limits::H2_IDLE_FACTOR), size);
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.clear_idle();
        self.shared.close_idle();
    }

    /// Closes all connections, those with streams after their last one.
    pub(crate) fn leave(&self) {
        self.clear_idle();
        self.shared.leave();
    }

    fn clear_idle(&self) {
        self.idle.clear();
        #[cfg(feature = "spike-engine")]
        self.sockets.clear();
    }
}
