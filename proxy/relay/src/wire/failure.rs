//! The reasons why a message is incomplete.

use std::sync::Arc;

use connect::TlsFault;

/// The reason why a request body is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// The client left.
    ClientGone,
    /// The client is connected, but its body is not framed as its head states.
    Malformed,
    /// The client sends the body too slowly.
    TooSlow,
    /// The client is slow, and has more than its share of this upstream while others wait.
    OverShare(Arc<str>),
}

/// The reason why a request has no response, or not all of one.
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
