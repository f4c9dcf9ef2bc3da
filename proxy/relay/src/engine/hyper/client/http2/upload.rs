//! The body of a request on its way to the server, within the windows that the server grants.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::Request;
use http::header::CONTENT_LENGTH;
use http::request::Parts;

use super::head;
use crate::engine::net::header_list::list_bytes;
use crate::engine::{BodyError, UpstreamBody};
use crate::limits;

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
    out: SendStream<Bytes>,
    /// The part of a slice that waits for the server's window.
    rest: Bytes,
    /// The slices so far, as long as the request may be sent again.
    sent: Option<Vec<Bytes>>,
    state: State,
}

/// The state of the body.
enum State {
    /// More of it may come.
    Open,
    /// All of it is sent or queued.
    Complete,
    /// The client has not sent all of it; the stream is reset.
    Failed(BodyError),
    /// The server takes no more of it.
    Stopped,
}

impl<B: UpstreamBody> Upload<B> {
    pub(super) fn new(parts: Parts, body: B, out: SendStream<Bytes>) -> Self {
        let state = if is_over(&parts, &body) { State::Complete } else { State::Open };
        let sent = Some(Vec::new());
        Self { request: Some((parts, body)), out, rest: Bytes::new(), sent, state }
    }

    /// The reason why the client has not sent all of the body.
    pub(super) fn failure(&self) -> Option<&BodyError> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Open | State::Complete | State::Stopped => None,
        }
    }

    /// Records that there is a response: the request is not sent again.
    pub(super) fn answered(&mut self) {
        self.sent = None;
        self.release();
    }

    fn release(&mut self) {
        if self.sent.is_none() && !matches!(self.state, State::Open) {
            self.request = None;
        }
    }

    /// Sends as far as the client and the server allow.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        if matches!(self.state, State::Open) {
            self.send_open(cx);
            self.release();
        }
    }

    /// The body is not read while a slice of it waits.
    fn send_open(&mut self, cx: &mut Context<'_>) {
        while let (State::Open, Some((parts, body))) = (&self.state, &mut self.request) {
            if self.rest.is_empty() {
                match Pin::new(body).poll_frame(cx) {
                    Poll::Pending => return,
                    Poll::Ready(None) => self.queue(Bytes::new(), true),
                    Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                        Ok(slice) => {
                            self.keep(&slice);
                            self.rest = slice;
                        }
                        Err(frame) => {
                            self.sent = None;
                            let trailers = head::fields(&frame.into_trailers().unwrap_or_default());
                            if list_bytes(&trailers) > limits::H2_SHARED_LIST_BYTES {
                                // The server may close the connection because of their length.
                                self.out.send_reset(Reason::CANCEL);
                                self.state = State::Failed(BodyError::Malformed);
                                continue;
                            }
                            let queued = self.out.send_trailers(trailers);
                            self.state = if queued.is_ok() { State::Complete } else { State::Stopped };
                        }
                    },
                    Poll::Ready(Some(Err(error))) => {
                        self.out.send_reset(Reason::CANCEL);
                        self.state = State::Failed(error);
                    }
                }
                continue;
            }
            // Only a piece is claimed, so that a stalled stream holds little of the connection's window.
            self.out.reserve_capacity(self.rest.len().min(limits::H2_UPLOAD_PIECE_BYTES));
            let capacity = match self.out.capacity() {
                0 => match self.out.poll_capacity(cx) {
                    Poll::Pending => return,
                    Poll::Ready(Some(Ok(capacity))) => capacity,
                    Poll::Ready(_) => return self.state = State::Stopped,
                },
                capacity => capacity,
            };
            let piece = self.rest.split_to(capacity.min(self.rest.len()));
            let is_last = self.rest.is_empty() && is_over(parts, body);
            self.queue(piece, is_last);
        }
    }

    fn queue(&mut self, piece: Bytes, is_last: bool) {
        match self.out.send_data(piece, is_last) {
            Ok(()) if is_last => self.state = State::Complete,
            Ok(()) => {}
            Err(_) => self.state = State::Stopped,
        }
    }

    /// Keeps a slice in case the server refuses the request, as long as all slices are within the limit.
    fn keep(&mut self, slice: &Bytes) {
        let kept: usize =
            self.sent.iter().flatten().chain([slice]).map(|slice| slice.len() + SLICE_BYTES).sum();
        match &mut self.sent {
            Some(sent) if kept <= limits::H2_REPLAY_BYTES => sent.push(slice.clone()),
            _ => self.sent = None,
        }
    }

    /// Takes the request back to send it again; `None` if not all of it is there.
    pub(super) fn take_back(&mut self) -> Option<Request<B>> {
        let sent = self.sent.take().filter(|_| self.failure().is_none())?;
        let (parts, mut body) = self.request.take()?;
        body.put_back(sent);
        Some(Request::from_parts(parts, body))
    }
}

/// Bytes by which a kept slice counts more than it has: many small ones take more memory than their bytes.
const SLICE_BYTES: usize = 64;
