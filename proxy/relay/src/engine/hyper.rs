//! The engine made of hyper: its server towards clients (HTTP/1.1 and HTTP/2 without TLS), its HTTP/1.1 client towards
//! upstreams, and beside it HTTP/2 towards upstreams, by the crate h2 that hyper uses.
//!
//! No task is spawned for an HTTP/1.1 connection to an upstream. The future that waits for it (the forwarding future,
//! then the response body) owns and polls it, so dropping that future closes the upstream's socket at once: cancellation
//! needs no signal that could get lost (law 4). With HTTP/2 it owns a stream in the same way; dropping it resets the
//! stream. A shared connection has a task, which ends once nothing uses it.
//!
//! Limits of hyper 1.12 that show on the wire:
//! - Requests that hyper itself cannot parse are answered without a body.
//! - Trailers pass only if the message's head announced them in `Trailer`, and to HTTP/1.1 clients
//!   only if the request had `TE: trailers`.
//! - Fields of one name are written together, at the place of the first.
//! - Chunks are re-created: the bytes are the same, their boundaries and extensions are not.
//! - `103 Early Hints` reach HTTP/1.1 clients (the proxy writes them), not HTTP/2 clients.

mod body;
mod client;
mod client_io;
mod server;

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use connect::{Protocol, Stream};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};

pub(crate) use self::body::RequestBody;
#[cfg(feature = "spike-engine")]
pub(crate) use self::client::{Heads, Http2Body, Outgoing, Waiting, request_head};
pub(crate) use self::client::{Http2Connection, Http2Stream, HyperConnection, Opened, Place, UpstreamAnswer};
use self::server::StreamTasks;
use crate::capacity::Permit;
use crate::engine::net::client::Client;
use crate::engine::{Cut, Served, UpstreamBody};
use crate::limits;
use crate::state::WorkerState;

/// hyper, configured for the connections of one worker.
pub(crate) struct Hyper {
    worker: Rc<WorkerState>,
    http1: http1::Builder,
    http2: http2::Builder<StreamTasks>,
    upstream: hyper::client::conn::http1::Builder,
    /// The buffer that receives the bytes of any client's socket; used within one poll only.
    read_buffer: RefCell<Box<[u8]>>,
}

impl Hyper {
    /// The engine of one worker.
    pub(crate) fn new(worker: &Rc<WorkerState>) -> Self {
        let plan = &worker.plan;
        let mut http1 = http1::Builder::new();
        http1
            .preserve_header_case(true)
            .auto_date_header(false)
            .max_buf_size(limits::BUFFER_BYTES)
            // A frame is copied into the write buffer, so that it is dropped before the next read: the read buffer is
            // reclaimed and none is allocated per frame.
            .writev(false)
            // The connection's stage has its own deadlines; hyper has one for all stages.
            .header_read_timeout(None);
        let mut http2 = http2::Builder::new(StreamTasks(Rc::clone(worker)));
        http2
            .auto_date_header(false)
            .max_concurrent_streams(plan.shares.h2_streams)
            .max_header_list_size(limits::H2_HEADER_LIST_BYTES)
            .max_pending_accept_reset_streams(limits::H2_PENDING_RESETS)
            .max_local_error_reset_streams(limits::H2_LOCAL_RESETS)
            .initial_stream_window_size(limits::H2_STREAM_WINDOW)
            .initial_connection_window_size(limits::H2_CONNECTION_WINDOW)
            .max_send_buf_size(limits::BUFFER_BYTES);
        let mut upstream = hyper::client::conn::http1::Builder::new();
        upstream.preserve_header_case(true).max_buf_size(limits::BUFFER_BYTES).writev(true);
        Self {
            worker: Rc::clone(worker),
            http1,
            http2,
            upstream,
            read_buffer: RefCell::new(vec![0; limits::CLIENT_READ_BYTES].into_boxed_slice()),
        }
    }

    /// Serves a client connection until it ends. `forward` makes the response to a request, or `None` if the client
    /// left.
    pub(crate) async fn serve<F, R, B>(self: Rc<Self>, client: Rc<Client>, forward: F) -> Served
    where
        F: Fn(Request<Incoming>) -> R + Unpin + 'static,
        R: Future<Output = Option<Response<B>>> + 'static,
        B: Body<Data = Bytes, Error = Cut> + 'static,
    {
        server::serve(self, client, forward).await
    }

    /// Starts HTTP on a stream that is connected to an upstream, by the protocol that both agreed on. `place`: its
    /// place among all sockets.
    pub(crate) async fn handshake<B: UpstreamBody>(
        &self,
        stream: Stream,
        place: Permit,
    ) -> io::Result<Opened<B>> {
        match stream.protocol() {
            Protocol::Http1 => client::http1(&self.upstream, &self.worker.turn, stream, place).await,
            Protocol::Http2 => client::http2(&self.worker, stream, place).await,
        }
    }
}
