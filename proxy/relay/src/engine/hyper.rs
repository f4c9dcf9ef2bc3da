//! The engine made of hyper: its server towards clients (HTTP/1.1 and HTTP/2 without TLS), its
//! HTTP/1.1 client towards upstreams.
//!
//! No task is spawned for an upstream connection. Its future is owned by whoever waits for it (the
//! forwarding future, then the response body) and is polled with it, so dropping that closes the
//! upstream's socket at once: cancellation needs no signal that could get lost (law 4).
//!
//! Limits of hyper 1.12 that show on the wire:
//! - Requests that hyper itself cannot parse are answered without a body.
//! - Trailers pass only if the message's head announced them in `Trailer`, and to HTTP/1.1 clients
//!   only if the request said `TE: trailers`.
//! - Fields of one name are written together, at the place of the first.
//! - Chunks are re-made: the bytes are the same, their boundaries and extensions are not.
//! - `103 Early Hints` reach HTTP/1.1 clients (we write them), not HTTP/2 clients.

mod admit;
mod ask;
mod client;
mod connection;
mod edit;
mod forward;
mod interim;
mod outgoing;
mod pool;
mod send;
mod serve;
mod tee;
mod tunnel;
mod upload;
mod visit;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::server::conn::{http1, http2};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use self::client::Client;
use self::pool::Pool;
use crate::limits;
use crate::worker::{Worker, guard};

/// What the connections of one worker share.
pub(crate) struct Engine {
    worker: Rc<Worker>,
    /// Idle connections, one pool per upstream in the plan's order.
    pools: Vec<Pool>,
    http1: http1::Builder,
    http2: http2::Builder<StreamTasks>,
    upstream: hyper::client::conn::http1::Builder,
    /// Where bytes from any client's socket land first; used within one poll only.
    read_buffer: RefCell<Box<[u8]>>,
    /// Requests not yet fully answered. This thread alone writes it.
    in_flight: Arc<AtomicUsize>,
    leaving: Cell<bool>,
    left: Arc<Notify>,
}

impl Engine {
    /// The engine of one worker; `in_flight` counts its requests for whoever asks from outside.
    pub(crate) fn new(worker: &Rc<Worker>, in_flight: Arc<AtomicUsize>) -> Rc<Self> {
        let plan = &worker.plan;
        let mut http1 = http1::Builder::new();
        http1
            .half_close(plan.half_close)
            .preserve_header_case(true)
            .auto_date_header(false)
            .max_buf_size(limits::BUFFER_BYTES)
            .writev(true)
            // The connection's stage has its own deadlines; hyper has one for both of them.
            .header_read_timeout(None);
        let mut http2 = http2::Builder::new(StreamTasks(Rc::clone(worker)));
        http2
            .auto_date_header(false)
            .max_concurrent_streams(limits::H2_STREAMS)
            .max_header_list_size(limits::H2_HEADER_LIST_BYTES)
            .max_pending_accept_reset_streams(limits::H2_PENDING_RESETS)
            .max_local_error_reset_streams(limits::H2_LOCAL_RESETS)
            .initial_stream_window_size(limits::H2_STREAM_WINDOW)
            .initial_connection_window_size(limits::H2_CONNECTION_WINDOW)
            .max_send_buf_size(limits::BUFFER_BYTES);
        let mut upstream = hyper::client::conn::http1::Builder::new();
        upstream.preserve_header_case(true).max_buf_size(limits::BUFFER_BYTES).writev(true);
        Rc::new(Self {
            worker: Rc::clone(worker),
            pools: plan.upstreams.iter().map(|_| Pool::new(plan.pool_size, plan.pool_idle)).collect(),
            http1,
            http2,
            upstream,
            read_buffer: RefCell::new(vec![0; limits::CLIENT_READ_BYTES].into_boxed_slice()),
            in_flight,
            leaving: Cell::new(false),
            left: Arc::new(Notify::new()),
        })
    }

    /// Serves one client connection of an upstream's listener until it ends; dropping it cuts it.
    pub(crate) async fn serve(self: Rc<Self>, upstream: usize, stream: TcpStream, peer: SocketAddr) {
        serve::serve(self, upstream, Client::new(stream, peer)).await;
    }

    /// Tells every connection to end after the request it is at; idle ones end now.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.left.notify_waiters();
        for pool in &self.pools {
            pool.clear();
        }
    }

    /// Closes idle upstream connections that are too old or were closed by their server.
    pub(crate) fn sweep(&self) {
        for pool in &self.pools {
            pool.sweep();
        }
    }

    pub(crate) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    fn request_began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    fn request_ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs HTTP/2 streams as tasks of this thread. A panic ends the stream, not the connection.
#[derive(Clone)]
struct StreamTasks(Rc<Worker>);

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future + 'static,
{
    fn execute(&self, stream: F) {
        let stream = async move {
            stream.await;
        };
        tokio::task::spawn_local(guard(Rc::clone(&self.0), stream));
    }
}
