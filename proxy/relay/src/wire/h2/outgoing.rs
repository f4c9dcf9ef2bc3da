//! The bytes of a request body on their way to the server, within the windows that the server grants.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;

use super::head;
use crate::limits;
use crate::request::headers::list_bytes;

/// A request body that is sent slice by slice.
pub(super) struct Outgoing {
    stream: SendStream<Bytes>,
    /// The part of a slice that waits for the server's window.
    rest: Bytes,
    /// The trailers, once the end of the body is known.
    end: Option<HeaderMap>,
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
    /// Its trailers are too long; the stream is reset.
    Failed,
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

    /// Returns true if its trailers were too long.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    /// Records that there is a response: the request is not sent again.
    pub(super) fn answered(&mut self) {
        self.sent = None;
    }

    /// Takes the slices so far, to send them again; `None` if not all of them are there.
    pub(super) fn take_back(&mut self) -> Option<Vec<Bytes>> {
        self.sent.take().filter(|_| !self.has_failed())
    }

    /// Adds a slice, once nothing waits before it. It is kept in case the server refuses the request, as long as all
    /// slices are within the limit.
    pub(super) fn push(&mut self, slice: Bytes) {
        let kept: usize =
            self.sent.iter().flatten().chain([&slice]).map(|slice| slice.len() + SLICE_BYTES).sum();
        match &mut self.sent {
            Some(sent) if kept <= limits::H2_REPLAY_BYTES => sent.push(slice.clone()),
            _ => self.sent = None,
        }
        self.rest = slice;
    }

    /// Ends the body after what waits.
    pub(super) fn end(&mut self, trailers: &HeaderMap) {
        if !trailers.is_empty() {
            self.sent = None;
        }
        self.end = Some(head::fields(trailers));
    }

    /// Sends what waits; ready once there is nothing. It is never ready if the server takes no more.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
            let is_last = self.rest.is_empty() && self.end.as_ref().is_some_and(HeaderMap::is_empty);
            self.queue(piece, is_last);
        }
        if self.is_open() {
            match self.end.take() {
                Some(trailers) if trailers.is_empty() => self.queue(Bytes::new(), true),
                // The server may close the connection because of their length.
                Some(trailers) if list_bytes(&trailers) > limits::H2_SHARED_LIST_BYTES => {
                    self.stream.send_reset(Reason::CANCEL);
                    self.state = State::Failed;
                }
                Some(trailers) => {
                    let queued = self.stream.send_trailers(trailers);
                    self.state = if queued.is_ok() { State::Complete } else { State::Stopped };
                }
                None => {}
            }
        }
        match self.state {
            State::Open | State::Complete => Poll::Ready(()),
            State::Failed | State::Stopped => Poll::Pending,
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
