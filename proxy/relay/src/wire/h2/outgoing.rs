//! The bytes of a request body on their way to the server, within the windows that the server grants.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;

use super::head;
use crate::conn::header_list::list_bytes;
use crate::limits;
use crate::wire::failure::BodyError;

/// A request body that is sent slice by slice.
pub(crate) struct Outgoing {
    stream: SendStream<Bytes>,
    /// The part of a slice that waits for the server's window.
    rest: Bytes,
    /// The end of the body, once it is known.
    end: Option<End>,
    /// The slices so far, as long as the request may be sent again.
    sent: Option<Vec<Bytes>>,
    state: State,
}

/// The end of a body.
enum End {
    Data,
    Trailers(HeaderMap),
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

impl Outgoing {
    /// A body of which nothing was sent. `is_complete`: it is empty, and the stream was ended with the head.
    pub(super) fn new(stream: SendStream<Bytes>, is_complete: bool) -> Self {
        let state = if is_complete { State::Complete } else { State::Open };
        Self { stream, rest: Bytes::new(), end: None, sent: Some(Vec::new()), state }
    }

    /// Returns true while the server takes more of it, and more may come or waits.
    fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// The reason why the client has not sent all of the body.
    pub(crate) fn failure(&self) -> Option<&BodyError> {
        match &self.state {
            State::Failed(error) => Some(error),
            State::Open | State::Complete | State::Stopped => None,
        }
    }

    /// Records that there is a response: the request is not sent again.
    pub(crate) fn answered(&mut self) {
        self.sent = None;
    }

    /// Takes the slices so far, to send them again; `None` if not all of them are there.
    pub(crate) fn take_back(&mut self) -> Option<Vec<Bytes>> {
        self.sent.take().filter(|_| self.failure().is_none())
    }

    /// Adds a slice, once nothing waits before it. It is kept in case the server refuses the request, as long as all
    /// slices are within the limit.
    pub(crate) fn push(&mut self, slice: Bytes) {
        let kept: usize =
            self.sent.iter().flatten().chain([&slice]).map(|slice| slice.len() + SLICE_BYTES).sum();
        match &mut self.sent {
            Some(sent) if kept <= limits::H2_REPLAY_BYTES => sent.push(slice.clone()),
            _ => self.sent = None,
        }
        self.rest = slice;
    }

    /// Ends the body after what waits.
    pub(crate) fn end(&mut self) {
        self.end.get_or_insert(End::Data);
    }

    /// Ends the body with trailers, after what waits.
    pub(crate) fn end_with(&mut self, trailers: &HeaderMap) {
        self.sent = None;
        self.end = Some(End::Trailers(head::fields(trailers)));
    }

    /// Resets the stream of a body that the client has not sent completely.
    fn fail(&mut self, error: BodyError) {
        self.stream.send_reset(Reason::CANCEL);
        self.state = State::Failed(error);
    }

    /// Sends what waits; ready once there is nothing. It is never ready if the server takes no more.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.is_open() && !self.rest.is_empty() {
            // Only a piece is claimed, so that a stalled stream holds little of the connection's window.
            self.stream.reserve_capacity(self.rest.len().min(limits::H2_UPLOAD_PIECE_BYTES));
            let capacity = match self.stream.capacity() {
                0 => match ready!(self.stream.poll_capacity(cx)) {
                    Some(Ok(capacity)) => capacity,
                    Some(Err(_)) | None => {
                        self.state = State::Stopped;
                        break;
                    }
                },
                capacity => capacity,
            };
            let piece = self.rest.split_to(capacity.min(self.rest.len()));
            let is_last = self.rest.is_empty() && matches!(self.end, Some(End::Data));
            self.queue(piece, is_last);
        }
        if self.is_open() {
            match self.end.take() {
                Some(End::Data) => self.queue(Bytes::new(), true),
                // The server may close the connection because of their length.
                Some(End::Trailers(trailers)) if list_bytes(&trailers) > limits::H2_SHARED_LIST_BYTES => {
                    self.fail(BodyError::Malformed);
                }
                Some(End::Trailers(trailers)) => {
                    let queued = self.stream.send_trailers(trailers);
                    self.state = if queued.is_ok() { State::Complete } else { State::Stopped };
                }
                None => {}
            }
        }
        match self.state {
            State::Open | State::Complete => Poll::Ready(()),
            State::Failed(_) | State::Stopped => Poll::Pending,
        }
    }

    fn queue(&mut self, piece: Bytes, is_last: bool) {
        match self.stream.send_data(piece, is_last) {
            Ok(()) if is_last => self.state = State::Complete,
            Ok(()) => {}
            Err(_) => self.state = State::Stopped,
        }
    }
}

/// Bytes by which a kept slice counts more than it has: many small ones take more memory than their bytes.
const SLICE_BYTES: usize = 64;
