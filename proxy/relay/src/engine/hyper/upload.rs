//! The request body on its way to the upstream: each slice is shown to the exchange and handed on
//! in the same turn. While the upstream is being connected one slice is read ahead, so that the
//! tick at which a request was complete is the client's doing and not the upstream's. A body that
//! may be edited is gathered first: its length has to be known before its first byte goes out.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use meter::Tick;

use super::visit::{self, Visit};
use crate::clock;
use crate::room::Share;

/// A request body as the upstream connection takes it.
pub(super) struct Upload {
    /// Where it comes from, until it is over.
    body: Option<Incoming>,
    /// What was read of it and not yet handed on.
    ahead: VecDeque<Result<Frame<Bytes>, UploadError>>,
    visit: Rc<Visit>,
}

/// A body that was gathered.
pub(super) enum Gathered {
    /// All of it, and nothing else.
    Whole(Bytes),
    /// It is too large, or ends in trailers: it goes on as it comes.
    Not,
}

impl Upload {
    /// A body that is empty is complete at once: the request was complete with its head, at `at`.
    pub(super) fn new(body: Incoming, visit: &Rc<Visit>, at: Tick) -> Self {
        if body.is_end_stream() {
            visit.complete(at);
        }
        Self { body: Some(body), ahead: VecDeque::new(), visit: Rc::clone(visit) }
    }

    /// The same body once more, from memory. The exchange has seen it.
    pub(super) fn again(body: Bytes, visit: &Rc<Visit>) -> Self {
        let ahead = VecDeque::from([Ok(Frame::data(body))]);
        Self { body: None, ahead, visit: Rc::clone(visit) }
    }

    /// Reads one slice ahead, if there is one.
    pub(super) fn read_ahead(&mut self, cx: &mut Context<'_>) {
        if self.ahead.is_empty()
            && self.visit.upload.get() == visit::Upload::Open
            && let Poll::Ready(Some(frame)) = self.poll_body(cx)
        {
            self.ahead.push_back(frame);
        }
    }

    /// Reads all of the body, as long as it has at most `most` bytes and `share` can grow by them.
    /// It stays the body to be sent.
    pub(super) async fn gather(&mut self, most: usize, share: &mut Share) -> Result<Gathered, UploadError> {
        let mut total = 0;
        loop {
            let frame = match std::future::poll_fn(|cx| self.poll_body(cx)).await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(error),
                None => break,
            };
            let length = frame.data_ref().map(Bytes::len);
            self.ahead.push_back(Ok(frame));
            match length {
                Some(length) if total + length <= most && share.grow(length) => total += length,
                _ => return Ok(Gathered::Not),
            }
        }
        let mut slices = self.ahead.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref());
        Ok(Gathered::Whole(match (slices.next(), slices.next()) {
            (None, _) => Bytes::new(),
            (Some(only), None) => only.clone(),
            (Some(first), Some(second)) => {
                let mut whole = BytesMut::with_capacity(total);
                [first, second].into_iter().chain(slices).for_each(|slice| whole.extend_from_slice(slice));
                whole.freeze()
            }
        }))
    }

    /// Sends these slices in place of a body that was gathered whole.
    pub(super) fn replace(&mut self, slices: impl Iterator<Item = Bytes>) {
        self.ahead = slices.filter(|slice| !slice.is_empty()).map(|slice| Ok(Frame::data(slice))).collect();
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let Self { body: source, visit, .. } = self;
        let Some(body) = source else { return Poll::Ready(None) };
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
                *source = None;
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
        match self.ahead.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => self.poll_body(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref());
        let ahead: u64 = ahead.map(|bytes| bytes.len() as u64).sum();
        let rest = self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
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
