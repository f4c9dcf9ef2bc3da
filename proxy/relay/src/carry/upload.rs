//! The request body on its way to the upstream: each slice is passed to the exchange and forwarded in the same turn. What
//! is read while there is no connection to the upstream, and a body that a decision depends on, are kept until then.

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
use crate::wire::{Buffers, Down, Framing, Part, Received, Take, Wire as _};

/// The body of one request.
pub(crate) struct Upload {
    state: State,
    /// True once the upstream is known to process the request.
    is_counted: bool,
    /// The part that was read and not yet given to the upstream's connection. Boxed: most bodies are forwarded as they
    /// arrive.
    ahead: Option<Box<Ahead>>,
    /// The rules for the fields that the client may not send, in trailers as in the head, if there may be trailers.
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
    /// The upstream, or the client, ended it.
    Broken,
}

/// The beginning of a body, or all of it, in memory.
#[derive(Default)]
pub(super) struct Ahead {
    pub(super) slices: VecDeque<Bytes>,
    /// The trailers, if all of the body was read.
    pub(super) trailers: HeaderMap,
    /// Its part of the memory for buffered bodies.
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

    /// Records that the upstream processes the request: it has all of it, or answers.
    pub(super) fn count(&mut self, in_flight: &InFlight) {
        if !std::mem::replace(&mut self.is_counted, true) {
            in_flight.metered.borrow_mut().with(|metering| metering.exchange.sent());
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

    /// Ends it before its end.
    pub(super) fn break_off(&mut self) {
        (self.state, self.ahead) = (State::Broken, None);
    }

    /// Puts slices back in front of what is in memory: the upstream has not processed them.
    pub(super) fn put_back(&mut self, slices: Vec<Bytes>) {
        if matches!(self.state, State::Given | State::Sent) {
            self.state = State::Read;
        }
        for slice in slices.into_iter().rev() {
            self.ahead().slices.push_front(slice);
        }
    }

    /// Called once everything given was sent. Returns true if the body is sent completely with that.
    pub(super) fn was_flushed(&mut self) -> bool {
        let is_given = self.state == State::Given;
        if is_given {
            self.state = State::Sent;
        }
        is_given
    }

    /// Gives the next piece of what is in memory to the upstream's connection, as much as its buffer holds, so that sent
    /// memory can be released. Returns false if there was nothing.
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
    pub(super) fn poll_read<'b>(
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

    /// Takes what was received: passes it to the exchange, and its payload and its end to `give`.
    pub(super) fn take(
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
                    in_flight.metered.borrow_mut().with(|metering| metering.exchange.request_body(data));
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
        match error {
            Some(error) => Err(self.fail(in_flight, error)),
            None => {
                debug_assert!(taken.is_ok(), "nothing stops a body");
                Ok(())
            }
        }
    }

    /// Forwards the next slice. Returns its bytes.
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
        if up.write(cx, slice, buffers).is_err() {
            self.break_off();
        }
        Poll::Ready(Ok(slice.len()))
    }

    /// Reads the next slice, and passes its payload to `keep`. Returns the trailers if it is the last.
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
