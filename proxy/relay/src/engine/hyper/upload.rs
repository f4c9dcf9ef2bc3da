//! The request body on its way to the upstream: each slice is shown to the exchange and handed on
//! in the same turn. While the upstream is being connected one slice is read ahead, so that the
//! tick at which a request was complete is the client's doing and not the upstream's.

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
    /// What was read ahead.
    ahead: Option<Result<Frame<Bytes>, UploadError>>,
    visit: Rc<Visit>,
}

impl Upload {
    /// A body that is empty is complete at once: the request was complete with its head, at `at`.
    pub(super) fn new(body: Incoming, visit: &Rc<Visit>, at: Tick) -> Self {
        if body.is_end_stream() {
            visit.complete(at);
        }
        Self { body, ahead: None, visit: Rc::clone(visit) }
    }

    /// Reads one slice ahead, if there is one.
    pub(super) fn read_ahead(&mut self, cx: &mut Context<'_>) {
        if self.ahead.is_none()
            && self.visit.upload.get() == visit::Upload::Open
            && let Poll::Ready(Some(frame)) = self.poll_body(cx)
        {
            self.ahead = Some(frame);
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let Self { body, visit, .. } = self;
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
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        match self.ahead.take() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => self.poll_body(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = match &self.ahead {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |bytes| bytes.len() as u64),
            _ => 0,
        };
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint
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
