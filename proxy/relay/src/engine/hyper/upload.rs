//! The request body on its way to the upstream: each slice is shown to the exchange and handed on
//! in the same turn; nothing is held.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use meter::Tick;

use super::visit::{self, Visit};
use crate::clock;

/// A request body as the upstream connection takes it.
pub(super) struct Upload {
    body: Incoming,
    visit: Rc<Visit>,
}

impl Upload {
    /// A body that is empty is complete at once: the request was complete with its head, at `at`.
    pub(super) fn new(body: Incoming, visit: &Rc<Visit>, at: Tick) -> Self {
        if body.is_end_stream() {
            visit.complete(at);
        }
        Self { body, visit: Rc::clone(visit) }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let Self { body, visit } = &mut *self;
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    visit.metered.borrow_mut().with(|exchange| exchange.request_body(bytes));
                }
                if (frame.is_trailers() || body.is_end_stream()) && !visit.is_complete() {
                    visit.complete(clock::now());
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                visit.upload.set(visit::Upload::Failed);
                Poll::Ready(Some(Err(UploadError::from(error))))
            }
            None => {
                if !visit.is_complete() {
                    visit.complete(clock::now());
                }
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a request body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UploadError {
    /// The client left.
    Gone,
    /// The client is there, but its body is not framed as its head said.
    Malformed,
}

impl From<hyper::Error> for UploadError {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        match cause.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Self::Malformed,
            _ => Self::Gone,
        }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the client left while it sent its request",
            Self::Malformed => "the request body is not framed as its head says",
        })
    }
}

impl Error for UploadError {}
