//! The request body on its way to the upstream: each slice is passed to the exchange and forwarded in the same turn. Bytes
//! that are read before there is a connection, and a body on which a decision depends, are kept until there is one.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Version};

use crate::capacity::Permit;
use crate::clock;
use crate::conn::pace::Verdict;
use crate::limits::BUFFER_BYTES;
use crate::request::forwarded;
use crate::request::headers;
use crate::request::in_flight::InFlight;
use crate::request::reject::Stop;
use crate::request::tenant::TenantResolver;
use crate::wire::failure::{BodyError, SendFailure};
use crate::wire::upstream::Upstream;
use crate::wire::{Buffers, Down, Framing, Part, Received, Take, Up as _, Wire as _};

/// The body of one request.
pub(crate) struct Upload {
    state: State,
    /// True once the exchange counts the request as sent.
    is_counted: bool,
    /// The part that was read and is not yet given to the upstream's connection. Boxed: most bodies are forwarded as they
    /// arrive.
    ahead: Option<Box<Ahead>>,
    /// The rules for fields that the client may not send, if there may be trailers.
    resolver: Option<Box<TenantResolver>>,
}

/// The state of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More is expected from the client.
    Open,
    /// All of it was read.
    Read,
    /// All of it was given to the upstream's connection.
    Given,
    /// All of it was sent.
    Sent,
    /// The upstream or the client ended it early.
    Broken,
}

/// The beginning of a body, or all of it, in memory.
#[derive(Default)]
pub(super) struct Ahead {
    pub(super) slices: VecDeque<Bytes>,
    /// The trailers, if all of the body was read.
    pub(super) trailers: HeaderMap,
    /// The memory that is reserved for it, if it is buffered.
    pub(super) share: Option<Rc<Permit>>,
}

impl Upload {
    /// The body of a request of which the head was read from `down`.
    pub(super) fn new(is_empty: bool, down: &impl Down, resolver: TenantResolver) -> Self {
        let state = if is_empty { State::Read } else { State::Open };
        // A body with a length has trailers in HTTP/2 only.
        let may_trail = down.framing() != Framing::Length || down.version() == Version::HTTP_2;
        let resolver = (!is_empty && may_trail).then(|| Box::new(resolver));
        Self { state, is_counted: false, ahead: None, resolver }
    }

    /// A body in memory. The exchange has already read it.
    pub(super) fn of(body: Bytes, trailers: HeaderMap) -> Self {
        let ahead = Ahead { slices: [body].into(), trailers, share: None };
        Self { state: State::Read, is_counted: false, ahead: Some(Box::new(ahead)), resolver: None }
    }

    /// True if some of it is in memory.
    pub(super) fn has_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// The part that is in memory.
    pub(super) fn ahead(&mut self) -> &mut Ahead {
        self.ahead.get_or_insert_default()
    }

    /// Counts the request as sent, once: the upstream has all of it, or answers.
    pub(super) fn count(&mut self, in_flight: &InFlight) {
        if !std::mem::replace(&mut self.is_counted, true) {
            in_flight.meter(|metering| metering.exchange.sent());
        }
    }

    /// True if more is expected from the client.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// True if all of it was given to the upstream's connection.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.state, State::Given | State::Sent)
    }

    /// True if all of it was sent.
    pub(super) fn is_sent(&self) -> bool {
        self.state == State::Sent
    }

    /// True if there is nothing more to do for it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Sent | State::Broken)
    }

    /// Ends it early.
    pub(super) fn break_off(&mut self) {
        (self.state, self.ahead) = (State::Broken, None);
    }

    /// Puts slices that the upstream has not processed back in front of those in memory.
    pub(super) fn put_back(&mut self, slices: Vec<Bytes>) {
        if matches!(self.state, State::Given | State::Sent) {
            self.state = State::Read;
        }
        for slice in slices.into_iter().rev() {
            self.ahead().slices.push_front(slice);
        }
    }

    /// Records that all bytes that were given are sent. Returns true if these were the last of the body.
    pub(super) fn was_flushed(&mut self) -> bool {
        let is_given = self.state == State::Given;
        if is_given {
            self.state = State::Sent;
        }
        is_given
    }

    /// Gives the next piece of the bytes in memory, or the end of the body, to the upstream's connection. A piece is as large
    /// as a connection's buffer, so that the memory of sent pieces can be freed. Returns false if there is nothing to give.
    pub(super) fn give_ahead(&mut self, up: &mut Upstream, buffers: &Buffers) -> bool {
        let mut left = BUFFER_BYTES;
        let is_read = self.state == State::Read;
        let Some(ahead) = &mut self.ahead else {
            if is_read {
                self.state = State::Given;
                up.begin(buffers);
                up.end(&[], None, &HeaderMap::new());
            }
            return is_read;
        };
        up.begin(buffers);
        while left > 0
            && let Some(slice) = ahead.slices.front_mut()
        {
            let piece = slice.split_to(slice.len().min(left));
            left -= piece.len();
            if slice.is_empty() {
                ahead.slices.pop_front();
            }
            if !piece.is_empty() {
                up.data(&[], &piece, None);
            }
        }
        if ahead.slices.is_empty() {
            if is_read {
                self.state = State::Given;
                up.end(&[], None, &ahead.trailers);
            }
            self.ahead = None;
        }
        true
    }

    /// Reads once from the client. An error ends the body.
    fn poll_read<'b>(
        &mut self,
        cx: &mut Context<'_>,
        (down, in_flight): (&mut impl Down, &Rc<InFlight>),
        buffer: &'b mut [u8],
    ) -> Poll<Result<Received<'b>, BodyError>> {
        let Poll::Ready(read) = down.poll_read(cx, buffer) else {
            in_flight.uploading.wait_in(cx.waker());
            in_flight.watch();
            let error = match in_flight.uploading.verdict() {
                Some(Verdict::Slow) => BodyError::TooSlow,
                Some(Verdict::OverShare) => BodyError::OverShare(Arc::clone(in_flight.upstream_name())),
                Some(Verdict::Ungathered) | None => return Poll::Pending,
            };
            return Poll::Ready(Err(self.fail(in_flight, error)));
        };
        Poll::Ready(Ok(Received::of(read, buffer)))
    }

    /// Passes the received payload to the exchange, and payload and end to `give`.
    fn take(
        &mut self,
        received: Received<'_>,
        (down, in_flight, buffers): (&mut impl Down, &Rc<InFlight>, &Buffers),
        mut give: impl FnMut(Part<'_>),
    ) -> Result<(), BodyError> {
        let mut error = None;
        let taken = down.parts(received, buffers, |part| {
            match part {
                Part::Data { data, verbatim } => {
                    in_flight.uploading.moved(data.len());
                    in_flight.meter(|metering| metering.exchange.request_body(data));
                    give(Part::Data { data, verbatim });
                }
                Part::End { mut trailers, verbatim } => {
                    headers::keep_trailers(&mut trailers);
                    if let Some(resolver) = self.resolver.take().filter(|_| !trailers.is_empty()) {
                        resolver.strip_untrusted_headers(&in_flight.worker, &mut trailers);
                        if in_flight.worker.plan.forwards && !resolver.trusts_peer(&in_flight.worker) {
                            forwarded::remove(&mut trailers);
                        }
                    }
                    in_flight.complete(clock::now());
                    self.state = State::Read;
                    give(Part::End { trailers, verbatim });
                }
                Part::Cut(SendFailure::Body(cause)) => error = Some(cause),
                // The head of a request was read before.
                Part::Interim(_) | Part::Head(_) | Part::Cut(_) => {}
            }
            Ok(Take::Taken)
        });
        debug_assert!(taken.is_ok(), "nothing stops a body");
        error.map_or(Ok(()), |error| Err(self.fail(in_flight, error)))
    }

    /// Forwards the next slice. Returns the number of its bytes.
    pub(super) fn poll_forward(
        &mut self,
        cx: &mut Context<'_>,
        (up, down, in_flight): (&mut Upstream, &mut impl Down, &Rc<InFlight>),
        (buffers, max): (&Buffers, usize),
    ) -> Poll<Result<usize, Stop>> {
        let mut buffer = buffers.read.borrow_mut();
        let received = ready!(self.poll_read(cx, (down, in_flight), &mut buffer[..max]))?;
        let slice = received.slice();
        up.begin(buffers);
        self.take(received, (down, in_flight, buffers), |part| match part {
            Part::Data { data, verbatim } => up.data(slice, data, verbatim),
            Part::End { trailers, verbatim } => up.end(slice, verbatim, &trailers),
            Part::Interim(_) | Part::Head(_) | Part::Cut(_) => {}
        })?;
        if self.state == State::Read {
            self.state = State::Given;
        }
        // What another connection may send is kept.
        if up.write(cx, slice, buffers).is_err() && !up.may_repeat() {
            self.break_off();
        }
        Poll::Ready(Ok(slice.len()))
    }

    /// Reads the next slice, and passes its payload to `keep`. Returns the trailers if it is the last slice.
    pub(super) fn poll_ahead(
        &mut self,
        cx: &mut Context<'_>,
        (down, in_flight): (&mut impl Down, &Rc<InFlight>),
        buffers: &Buffers,
        mut keep: impl FnMut(&[u8]),
    ) -> Poll<Result<Option<HeaderMap>, BodyError>> {
        let mut buffer = buffers.read.borrow_mut();
        let received = ready!(self.poll_read(cx, (down, in_flight), &mut buffer))?;
        let mut last = None;
        self.take(received, (down, in_flight, buffers), |part| match part {
            Part::Data { data, .. } => keep(data),
            Part::End { trailers, .. } => last = Some(trailers),
            Part::Interim(_) | Part::Head(_) | Part::Cut(_) => {}
        })?;
        Poll::Ready(Ok(last))
    }

    fn fail(&mut self, in_flight: &InFlight, error: BodyError) -> BodyError {
        self.break_off();
        in_flight.fail_upload();
        error
    }
}
