//! The interface between requests and the HTTP engine that carries their bytes. Policy, header fields, routes, the
//! proxy's own answers, the meter and the record are the same for every engine. Each engine has one folder below this
//! file, and nothing outside that folder names its library.
//!
//! # The duties of an engine
//!
//! 1. [`Engine::serve`] hands each request to the function that forwards it, with its head as the client sent it, and
//!    sends the response that comes back. Dropping the future cuts the connection; if the client leaves before its
//!    response, the engine drops the function's future.
//! 2. A request body yields each slice once, in order, as the client sent it. It fails with [`BodyError::ClientGone`]
//!    if the client left, and with [`BodyError::Malformed`] if its framing is broken.
//! 3. A [`Connection`] is driven by the future that owns it, with [`Connection::drive`], and dropping it closes its socket
//!    or resets its stream (law 4). A response body is ready in the turn in which its bytes were read (law 2).
//! 4. A truncated body reaches the client truncated: no last chunk, a reset stream.
//! 5. Nothing is buffered beyond [`limits::BUFFER_BYTES`](crate::limits::BUFFER_BYTES) each way: a slow client stops
//!    its upstream, and on a shared connection its own stream only.
//!
//! # The duties of the callers
//!
//! 1. Call [`check`](crate::request::policy::check) before anything is sent; a violation is answered and counted, and
//!    no byte goes upstream. Then apply the tenant rules to the head: they remove untrusted fields, strip a prefix of
//!    the path, and, if the path may be metered, resolve the tenant.
//! 2. For a path that may be metered, call `Metering::begin` when the head is known, then pass each slice of the
//!    request body once; then call `request_complete`, also without a body. With a gate, check it before anything goes
//!    upstream: after the body is buffered, if the decision depends on it; `refused` ends the exchange without a
//!    record. A request in which usage may be requested is buffered, edited by the crate `usage`, and sent unchanged if
//!    the server rejects the edit; `asked_more` reports the accepted options.
//! 3. Call `response_head` once, for the answer that the client will see. Its result may be that there is no exchange,
//!    or that the body is edited. Then pass each slice of the response body once, in order, with the tick at which it
//!    was read, in the turn in which it is forwarded (law 2). The slice is forwarded unchanged, except for the marked
//!    parts of an edited body; bytes held there are forwarded after `usage::HOLD_TIME`, at the end, or when the meter
//!    fails.
//! 4. Call exactly one end: `response_end` after a complete body, `upstream_cut` after a truncated one,
//!    `answered_locally` if no upstream answered. An exchange dropped without any of them means that the client left.
//!    By then the upstream's socket is closed (law 4), unless `client_left` requested the rest of the body, which is
//!    passed to the exchange for at most [`limits::REST_TIME`](crate::limits::REST_TIME) before the drop.

pub(crate) mod hyper;
pub(crate) mod net;

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use connect::{Stream, TlsFault};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};

use self::net::client::Client;
use crate::capacity::Permit;
use crate::state::WorkerState;

scan::listed_enum! {
    /// The available engines.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum EngineKind {
        /// hyper's server and client.
        #[default]
        Hyper,
    }
}

/// An HTTP library that carries the bytes of one worker's connections.
pub(crate) trait Engine: Sized + 'static {
    /// A request body as a client sends it.
    type RequestBody: ClientBody;
    /// A connection to an upstream for request bodies of type `B`.
    type Connection<B: UpstreamBody>: Connection<RequestBody = B>;

    /// The engine of one worker.
    fn new(worker: &Rc<WorkerState>) -> Self;

    /// Serves a client connection until it ends. `forward` makes the response to a request, or `None` if the client
    /// left.
    fn serve<F, R, B>(self: Rc<Self>, client: Rc<Client>, forward: F) -> impl Future<Output = Served>
    where
        F: Fn(Request<Self::RequestBody>) -> R + Unpin + 'static,
        R: Future<Output = Option<Response<B>>> + 'static,
        B: Body<Data = Bytes, Error = Cut> + 'static;

    /// Starts HTTP on a stream that is connected to an upstream, by the protocol that both agreed on. `place`: its
    /// place among all sockets.
    fn handshake<B: UpstreamBody>(
        &self,
        stream: Stream,
        place: Permit,
    ) -> impl Future<Output = io::Result<Opened<Self::Connection<B>>>>;
}

/// A new connection to an upstream.
pub(crate) enum Opened<C: Connection> {
    /// It carries one request at a time, and has this place among all sockets.
    Exclusive(C, Permit),
    /// It carries several requests at once, and keeps its place itself.
    Shared(C::Shared),
}

/// A connection that carries several requests at once. A task drives it. Its drop lets its streams finish and then
/// closes it.
pub(crate) trait Shared<C>: 'static {
    /// A stream for one request.
    fn stream(&self) -> C;

    /// Returns true while the server accepts further requests.
    fn is_open(&self) -> bool;

    /// The number of streams.
    fn streams(&self) -> usize;

    /// The number of streams that the server allows at once; `None` until it states one.
    fn streams_max(&self) -> Option<usize>;
}

/// A connection to an upstream for one request at a time, or a stream of a shared one. It is owned by the future that
/// waits for it.
pub(crate) trait Connection: Sized + 'static {
    /// The type of request bodies it carries.
    type RequestBody;
    /// The type of response bodies it yields.
    type ResponseBody: Body<Data = Bytes> + Unpin + 'static;
    /// A connection with streams of this type.
    type Shared: Shared<Self>;

    /// Registers `request` to receive each interim response. Libraries require a function that may be called from any
    /// thread; it is called only while the connection is driven.
    fn report_interim(
        &self,
        request: &mut Request<Self::RequestBody>,
        report: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static,
    );

    /// Queues a request; [`drive`](Self::drive) sends it and reads its response.
    fn send(
        &mut self,
        request: Request<Self::RequestBody>,
    ) -> impl Future<Output = Result<Response<Self::ResponseBody>, SendError<Self::RequestBody>>> + use<Self>;

    /// Reads and writes as far as possible. An error is returned by the future that waits for the response or its body.
    /// Returns the context in which that future and the body are polled next: where only this call makes them ready, it
    /// wakes nothing.
    fn drive<'c>(&mut self, cx: &'c mut Context<'_>) -> Context<'c>;

    /// Releases a closed connection, and with it a queued request of which nothing was sent; false if it is not closed,
    /// or already released.
    fn release(&mut self) -> bool;

    /// Returns true if another request may be sent: the last one was sent and answered completely, and the server keeps
    /// the connection open.
    fn is_reusable(&self) -> bool;

    /// Returns true if an idle connection can still be used, by the state that its socket had at the runtime's last
    /// poll of all sockets.
    fn is_open(&mut self, cx: &mut Context<'_>) -> bool;

    /// Returns true if an idle connection can still be used, by the kernel's present state of its socket.
    fn is_alive(&mut self, cx: &mut Context<'_>) -> bool;

    /// Takes the socket after the upstream switched protocols, with the bytes read after the 101.
    fn into_socket(self) -> impl Future<Output = Option<(Stream, Bytes)>>;
}

/// A request body as it arrives from a client.
pub(crate) trait ClientBody: Body<Data = Bytes, Error: Into<BodyError>> + Unpin + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BodyError>> + Unpin + 'static> ClientBody for B {}

/// A request body as it is sent to an upstream.
pub(crate) trait UpstreamBody: Body<Data = Bytes, Error = BodyError> + Unpin + 'static {
    /// Puts its first slices back, which the server has not processed, so that they are read again.
    fn put_back(&mut self, slices: Vec<Bytes>);
}

/// The end of a client's connection.
#[derive(Debug)]
pub(crate) enum Served {
    /// It ended.
    Ended,
    /// It switched protocols. The bytes were read after its last request.
    Switched(Bytes),
}

/// The reason why a request body is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// The client left.
    #[error("the client left while it sent its request")]
    ClientGone,
    /// The client is connected, but the body's framing differs from its head.
    #[error("the request body is not framed as its head says")]
    Malformed,
    /// The client sends the body too slowly.
    #[error("the request body arrives too slowly")]
    TooSlow,
    /// The client is slow, and has more than its share of this upstream while another one waits.
    #[error("the client holds more than its share")]
    OverShare(Arc<str>),
}

/// The reason why a request has no response.
pub(crate) struct SendError<B> {
    /// The request, if nothing of it was sent or processed.
    pub(crate) unsent: Option<Request<B>>,
    pub(crate) cause: SendFailure,
}

/// The cause of a [`SendError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The request body was incomplete.
    Body(BodyError),
    /// The response head exceeds its limits.
    HeadTooLarge,
    /// The response is not valid HTTP.
    Invalid,
    /// The server has not processed the request, and reported that.
    Refused,
    /// The server closed the connection with an error, which this request may have caused, and has not processed it.
    ConnectionError,
    /// The server accepts the request over HTTP/1.1 only, and has not processed it.
    NeedsHttp1,
    /// The server ended the request's stream.
    Reset,
    /// The server did not answer a PING.
    Silent,
    /// TLS failed after its handshake, or the server speaks it unexpectedly.
    Tls(TlsFault),
    /// The connection closed.
    Closed,
}

/// The error of a truncated response body: the engine closes the connection without a last chunk, or resets the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the upstream's body is truncated")]
pub(crate) struct Cut;

/// A frame of a response body, or its end.
pub(crate) type Part = Option<Result<Frame<Bytes>, Cut>>;
