//! The body of a response on its way to the client, as hyper's server takes it.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use super::tee::Tee;

/// A response body.
#[pin_project(project = OutgoingProj)]
pub(super) enum Outgoing {
    /// The upstream's.
    Tee(#[pin] Tee),
    /// One of our own answers.
    Answer(Option<Bytes>),
    /// None, but the head names a length: what a 304 says of the body it does not send. hyper
    /// would take the field away from a body that says it is empty.
    Declared(u64),
    /// None.
    Empty,
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.project() {
            OutgoingProj::Tee(tee) => tee.poll_frame(cx),
            OutgoingProj::Answer(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            OutgoingProj::Declared(_) | OutgoingProj::Empty => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Tee(tee) => tee.is_end_stream(),
            Self::Answer(bytes) => bytes.is_none(),
            Self::Declared(_) => false,
            Self::Empty => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Tee(tee) => tee.size_hint(),
            Self::Answer(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Declared(length) => SizeHint::with_exact(*length),
            Self::Empty => SizeHint::with_exact(0),
        }
    }
}

/// The body broke off: hyper closes the connection without a last chunk, or resets the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upstream's body broke off")
    }
}

impl Error for Cut {}
