//! The contract between the requests and the engine that carries their bytes. Policy, fields, routes, answers, the
//! meter and the record stand above it and are the same for every engine; below it is one folder per engine, and
//! nothing outside that folder names the library the engine is made of.
//!
//! # The duties of an engine
//!
//! 1. [`Engine::serve`] hands each request to the function that forwards it, with its head as the client sent it,
//!    and sends the response that comes back. Dropping the future cuts the connection; if the client leaves before
//!    its response, the engine drops the function's future.
//! 2. A request body gives each slice once, in order, as the client sent it. It fails with
//!    [`BodyError::ClientGone`] if the client left, and with [`BodyError::Malformed`] if its framing is broken.
//! 3. A [`Connection`] does nothing by itself: [`Connection::drive`] moves it, and dropping it closes its socket
//!    (law 4). A response body is ready only through `drive`, in the turn in which its bytes were read (law 2).
//! 4. A body that broke off reaches the client broken off: no last chunk, a reset stream.
//! 5. Nothing is buffered beyond [`limits::BUFFER_BYTES`](crate::limits::BUFFER_BYTES) each way: a slow client stops
//!    its upstream.
//!
//! # The duties of those above
//!
//! 1. [`check`](crate::request::policy::check) before anything is sent; a violation is answered and
//!    counted, and no byte goes upstream. Then the tenant rules judge the head: which fields its peer may not send,
//!    which prefix of its path goes, and, of a path that may be metered, whose request it is.
//! 2. For a path that may be metered, `Exchange::begin` when the head is known, then each slice of
//!    the request body once; then `request_complete`, also when there was no body. Where the plan has a gate, it is
//!    asked before anything goes upstream: of a request whose body decides it, after it was gathered; `refused` ends
//!    the exchange without a record. A request in which usage may be asked for is gathered, edited by
//!    the crate `usage`, and sent as it came if the server refuses the edit; `asked_more` says what
//!    is in the request that counts.
//! 3. `response_head` once, of the answer the client will see. It may say that there is no exchange
//!    here after all, or that the body is edited. Then each slice of the response body once, in
//!    order, with the tick at which it was read, in the turn in which it is handed on (law 2). The
//!    slice is handed on whatever the exchange makes of it, but for what it marks in an edited body;
//!    what waits there goes after `usage::HOLD_TIME`, at the end, or when the meter fails.
//! 4. Exactly one end: `response_end` after a complete body, `upstream_cut` when it broke off,
//!    `answered_locally` when no upstream could; or the exchange is dropped without any of them,
//!    which means that the client left. By then the upstream's socket is closed (law 4), unless `client_left` asked
//!    for the rest of the body, which is shown to the exchange for at most
//!    [`limits::REST_TIME`](crate::limits::REST_TIME) before it is dropped.

pub(crate) mod hyper;
pub(crate) mod net;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use tokio::net::TcpStream;

use self::net::client::Client;
use crate::state::WorkerState;

/// The engines that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// hyper's server and client.
    #[default]
    Hyper,
}

impl EngineKind {
    /// Every engine, the default first.
    pub const ALL: &[Self] = &[Self::Hyper];
}

/// A library that carries the bytes of one worker's connections.
pub(crate) trait Engine: Sized + 'static {
    /// A request body as a client sends it.
    type RequestBody: ClientBody;
    /// A connection to an upstream for request bodies of type `B`.
    type Connection<B: UpstreamBody>: Connection<RequestBody = B>;

    /// The engine of one worker.
    fn new(worker: &Rc<WorkerState>) -> Self;

    /// Serves a client's connection until it ends. `forward` makes the response to a request; it is `None` if the
    /// client left.
    fn serve<F, R, B>(self: Rc<Self>, client: Rc<Client>, forward: F) -> impl Future<Output = Served>
    where
        F: Fn(Request<Self::RequestBody>) -> R + Unpin + 'static,
        R: Future<Output = Option<Response<B>>> + 'static,
        B: Body<Data = Bytes, Error = Cut> + 'static;

    /// Speaks HTTP over a socket that was connected to an upstream.
    fn handshake<B: UpstreamBody>(
        &self,
        stream: TcpStream,
    ) -> impl Future<Output = io::Result<Self::Connection<B>>>;

    /// Has each interim response to `request` reported. The library may ask for a function that could be called from
    /// any thread; it is only called while the connection is driven.
    fn report_interim<B>(
        request: &mut Request<B>,
        report: impl Fn(StatusCode, &HeaderMap) + Send + Sync + 'static,
    );
}

/// A connection to an upstream. No task is behind it: it is owned by the future that waits for it.
pub(crate) trait Connection: 'static {
    /// The body of a request that it carries.
    type RequestBody;
    /// The body of a response that it brings.
    type ResponseBody: Body<Data = Bytes> + Unpin + 'static;

    /// Queues a request; [`drive`](Self::drive) sends it and brings its response.
    fn send(
        &mut self,
        request: Request<Self::RequestBody>,
    ) -> impl Future<Output = Result<Response<Self::ResponseBody>, SendError<Self::RequestBody>>> + use<Self>;

    /// Reads and writes what can be. An error reaches the future that waits for the response or its body.
    fn drive(&mut self, cx: &mut Context<'_>);

    /// Lets go of a closed connection, which gives back a request that it never looked at; false
    /// if it is not closed, or was let go of before.
    fn bury(&mut self) -> bool;

    /// Returns true if another request may be sent: the last one was fully sent and fully answered, and
    /// the server keeps the connection.
    fn is_reusable(&self) -> bool;

    /// Returns true if an idle connection can still be used. Asks the kernel itself, because the runtime
    /// only knows the socket's state of the last time it polled.
    fn is_alive(&mut self, cx: &mut Context<'_>) -> bool;

    /// Takes the socket out after the upstream switched protocols, and the bytes that were read behind the 101.
    fn into_socket(self) -> impl Future<Output = Option<(TcpStream, Bytes)>>;
}

/// A request body as it comes from a client.
pub(crate) trait ClientBody: Body<Data = Bytes, Error: Into<BodyError>> + Unpin + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BodyError>> + Unpin + 'static> ClientBody for B {}

/// A request body as it goes to an upstream.
pub(crate) trait UpstreamBody: Body<Data = Bytes, Error = BodyError> + 'static {}

impl<B: Body<Data = Bytes, Error = BodyError> + 'static> UpstreamBody for B {}

/// The end of a client's connection.
#[derive(Debug)]
pub(crate) enum Served {
    /// It is over.
    Ended,
    /// It switched protocols. The bytes were read behind its last request.
    Switched(Bytes),
}

/// The reason why a request body broke off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// The client left.
    ClientGone,
    /// The client is there, but its body is not framed as its head said.
    Malformed,
    /// The client is there, but its body comes too slowly.
    TooSlow,
    /// The client is slow, and holds more than its share of this upstream while another one waits.
    Crowding(Arc<str>),
}

/// The reason why a request brought no response.
pub(crate) struct SendError<B> {
    /// The request, if nothing of it was sent.
    pub(crate) unsent: Option<Request<B>>,
    pub(crate) cause: SendFailure,
}

/// The cause of a [`SendError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The request body broke off.
    Body(BodyError),
    /// The response head is larger than its limits.
    HeadTooLarge,
    /// The response is not valid HTTP/1.1.
    Invalid,
    /// The connection closed.
    Closed,
}

/// The error of a response body that broke off: the engine closes the connection without a last chunk, or resets the
/// stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut;

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientGone => "the client left while it sent its request",
            Self::Malformed => "the request body is not framed as its head says",
            Self::TooSlow => "the request body comes too slowly",
            Self::Crowding(_) => "the client holds more than its share",
        })
    }
}

impl Error for BodyError {}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream's body broke off")
    }
}

impl Error for Cut {}
