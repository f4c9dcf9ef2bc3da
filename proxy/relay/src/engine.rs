//! The interface between requests and the HTTP libraries that carry their bytes. Policy, header fields, routes, the proxy's
//! own answers, the meter and the record are the same for every protocol. A library is named in its folder below this
//! file only.
//!
//! # The duties of an engine
//!
//! 1. [`serve`](hyper::Hyper::serve) hands each request to the function that forwards it, with its head as the client
//!    sent it, and sends the response that comes back. Dropping the future cuts the connection; if the client leaves
//!    before its response, the engine drops the function's future.
//! 2. A request body yields each slice once, in order, as the client sent it. It fails with [`BodyError::ClientGone`]
//!    if the client left, and with [`BodyError::Malformed`] if its framing is broken.
//! 3. A connection to an upstream is driven by the future that owns it, and dropping it closes its socket or resets its
//!    stream (law 4). A response body is ready in the turn in which its bytes were read (law 2).
//! 4. A truncated body reaches the client truncated: no last chunk, a reset stream.
//! 5. Nothing is buffered beyond [`limits::BUFFER_BYTES`](crate::limits::BUFFER_BYTES) each way: a slow client stops
//!    its upstream, and on a shared connection its own stream only.
//!
//! # The duties of the callers
//!
//! 1. Call [`open`](crate::request::open) when the head of a request is known, and `decide` before anything is sent. Pass
//!    each slice of the request body to the exchange once, then call `complete`, also without a body. If the server
//!    rejects an edited request, send the original.
//! 2. Call [`Response::head`](crate::response::Response::head) once, for the answer that the client will see. Then pass
//!    each slice of its body once, in order, with the tick at which it was read, in the turn in which it is forwarded
//!    (law 2). Bytes that are held are forwarded after `usage::HOLD_TIME`, at the end, or when the meter fails.
//! 3. Call exactly one end: `end` after a complete body, `cut` after a truncated one, or `reject` if no upstream
//!    answered. A drop without any of them means that the client left. By then the upstream's socket is closed (law 4),
//!    unless `leave` requested the rest of the body, which is passed to the exchange for at most
//!    [`limits::REST_TIME`](crate::limits::REST_TIME).

pub(crate) mod hyper;
pub(crate) mod net;

use std::sync::Arc;

use bytes::Bytes;
use connect::TlsFault;
use http::Request;
use http_body::{Body, Frame};

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

impl SendFailure {
    /// Returns true if the server has not processed the request, and reported that.
    pub(crate) fn is_unprocessed(&self) -> bool {
        matches!(self, Self::Refused | Self::ConnectionError | Self::NeedsHttp1)
    }
}

/// The error of a truncated response body: the engine closes the connection without a last chunk, or resets the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the upstream's body is truncated")]
pub(crate) struct Cut;

/// A frame of a response body, or its end.
pub(crate) type Part = Option<Result<Frame<Bytes>, Cut>>;
