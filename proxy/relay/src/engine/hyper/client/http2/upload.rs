//! The body of a request that is read from the client as the server takes it.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use http::header::CONTENT_LENGTH;
use http::request::Parts;

use super::outgoing::Outgoing;
use crate::engine::{BodyError, UpstreamBody};

/// Returns true if nothing of a body is left. An HTTP/2 client may leave its stream open after the last byte of a known
/// length.
pub(super) fn is_over<B: UpstreamBody>(parts: &Parts, body: &B) -> bool {
    let is_sized = parts.headers.contains_key(CONTENT_LENGTH);
    body.is_end_stream() || is_sized && body.size_hint().exact() == Some(0)
}

/// A request whose head is queued, and its body.
pub(super) struct Upload<B> {
    /// `None` once nothing of it is needed any more, or it was taken back: it holds what the exchange holds.
    request: Option<(Parts, B)>,
    out: Outgoing,
}

impl<B: UpstreamBody> Upload<B> {
    pub(super) fn new(parts: Parts, body: B, out: Outgoing) -> Self {
        Self { request: Some((parts, body)), out }
    }

    /// The reason why the client has not sent all of the body.
    pub(super) fn failure(&self) -> Option<&BodyError> {
        self.out.failure()
    }

    /// Records that there is a response: the request is not sent again.
    pub(super) fn answered(&mut self) {
        self.out.answered();
        self.release();
    }

    fn release(&mut self) {
        if !self.out.may_repeat() && !self.out.is_open() {
            self.request = None;
        }
    }

    /// Sends as far as the client and the server allow.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        if self.out.is_open() {
            self.send_open(cx);
            self.release();
        }
    }

    /// The body is not read while a slice of it waits.
    fn send_open(&mut self, cx: &mut Context<'_>) {
        while let Some((parts, body)) = self.request.as_mut().filter(|_| self.out.is_open()) {
            if is_over(parts, body) {
                self.out.end();
            }
            if self.out.poll_flush(cx).is_pending() || !self.out.is_open() {
                return;
            }
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => self.out.end(),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(slice) => self.out.push(slice),
                    Err(frame) => self.out.end_with(&frame.into_trailers().unwrap_or_default()),
                },
                Poll::Ready(Some(Err(error))) => self.out.fail(error),
            }
        }
    }

    /// Takes the request back to send it again; `None` if not all of it is there.
    pub(super) fn take_back(&mut self) -> Option<Request<B>> {
        let sent = self.out.take_back()?;
        let (parts, mut body) = self.request.take()?;
        body.put_back(sent);
        Some(Request::from_parts(parts, body))
    }
}
