//! A stream of an HTTP/2 connection to an upstream, for one request. Its drop resets the stream, and the connection lives
//! on (law 4).

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, response};
use http_body::Body as _;
use http1::Lines;

use super::body::Http2Body;
use super::frames::Frames;
use super::head::request as request_head;
use super::outgoing::Outgoing;
use super::waiting::{Heads, Place, Waiting};
use crate::capacity::Permit;
use crate::request::headers;
use crate::request::in_flight::{Carrier, InFlight};
use crate::request::reject::Stop;
use crate::wire::failure::{BodyError, SendFailure};
use crate::wire::writer::Writer;
use crate::wire::{Buffers, Framing, Head, Part, Received, Take, Unanswered, Up, Wire};

/// A stream with its request.
pub(crate) struct Http2Up {
    // Before `place` and `slot`: the stream is reset before its places are free.
    response: State,
    /// The event after the bytes of the last slice.
    event: Option<Event>,
    request: Option<Outgoing>,
    /// The head of the request, until it is queued.
    head: Option<Request<()>>,
    writer: Writer,
    /// The request, as long as it may be sent again.
    kept: Option<Box<Unanswered>>,
    /// True if the response has no body: the method is `HEAD`.
    is_head: bool,
    /// True if trailers may follow a body of the length that its head states.
    has_trailers: bool,
    /// True if the connection may have carried a request before this one.
    is_reused: bool,
    /// Its place on the connection, until the request fails.
    place: Option<Place>,
    /// Its place among the upstream's active requests, until another attempt has it.
    slot: Option<Permit>,
}

/// The state of the response.
enum State {
    /// The request is not queued.
    Unsent,
    /// Its head is expected.
    Waiting(Waiting),
    /// Its body is expected.
    Body(Frames<Http2Body>, Option<Box<Untaken>>),
    /// It has ended, or is truncated.
    Ended,
}

/// A head that was not taken, and the first bytes of its body.
struct Untaken {
    head: response::Parts,
    framing: Framing,
    beginning: Vec<u8>,
}

/// A part of a response without payload, or its failure.
enum Event {
    Interim(Response<()>),
    End(HeaderMap),
    Cut(SendFailure),
}

impl Http2Up {
    /// A stream for one request, with its place at the upstream. `is_reused`: the connection may have carried others.
    pub(crate) fn new(place: Place, is_reused: bool, slot: Permit, in_flight: &InFlight) -> Self {
        in_flight.carrier.set(Carrier::Stream);
        Self {
            response: State::Unsent,
            event: None,
            request: None,
            head: None,
            writer: Writer::of_frames(),
            kept: None,
            is_head: false,
            has_trailers: !in_flight.is_http1(),
            is_reused,
            place: Some(place),
            slot: Some(slot),
        }
    }

    /// Returns true if all bytes of a stated length were given. Trailers may follow.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(&self.response, State::Body(body, None) if body.is_whole())
    }

    /// Reads heads; ready once a body is expected, or there is an event.
    fn poll_heads(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let State::Waiting(waiting) = &mut self.response else { return Poll::Ready(()) };
        let received = match &self.request {
            Some(request) if request.has_failed() => Err(SendFailure::Body(BodyError::Malformed)),
            _ => ready!(waiting.poll(cx)),
        };
        match received {
            Ok(Heads::Interim(interim)) => self.event = Some(Event::Interim(interim)),
            Ok(Heads::Final(response)) => {
                self.kept = None;
                if let Some(request) = &mut self.request {
                    request.answered();
                }
                let (mut head, body) = Http2Body::of(response, self.is_head).into_parts();
                headers::make_canonical(&mut head.headers);
                let is_sized = head.headers.contains_key(CONTENT_LENGTH);
                if body.is_end_stream() && !body.is_empty() && !is_sized && !self.has_trailers {
                    // HTTP/1.1 needs it.
                    head.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                }
                let framing = if is_sized || body.is_end_stream() { Framing::Length } else { Framing::Close };
                let untaken = Untaken { head, framing, beginning: Vec::new() };
                self.response = State::Body(Frames::new(body), Some(Box::new(untaken)));
            }
            Err(cause) => self.event = Some(Event::Cut(cause)),
        }
        Poll::Ready(())
    }

    /// Reads the next slice of the body. There are no bytes if there is only an event.
    fn poll_body(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
        let State::Body(body, _) = &mut self.response else { return Poll::Pending };
        let (read, last) = ready!(body.poll_slice(cx, buffer, self.has_trailers));
        self.event = last.map(|last| match last {
            Ok(trailers) => Event::End(trailers),
            Err(_) => Event::Cut(SendFailure::Closed),
        });
        Poll::Ready(read)
    }
}

/// A head as a part.
fn head<'r>(
    status: StatusCode,
    fields: &'r HeaderMap,
    framing: Framing,
    beginning: Option<&'r [u8]>,
) -> Head<'r> {
    let reason = status.canonical_reason().unwrap_or_default();
    Head { status, reason, fields, lines: Lines::default(), framing, beginning }
}

impl Wire for Http2Up {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.event.is_some() {
            return match &self.response {
                // The head before it is still to be taken.
                State::Body(_, Some(_)) => Poll::Pending,
                _ => Poll::Ready(Ok(0)),
            };
        }
        let is_waiting = matches!(self.response, State::Waiting(_));
        ready!(self.poll_heads(cx));
        if self.event.is_some() {
            return Poll::Ready(Ok(0));
        }
        match self.poll_body(cx, buffer) {
            // The body often arrives with its head, and sometimes later.
            Poll::Pending if is_waiting => Poll::Ready(Ok(0)),
            read => read.map(Ok),
        }
    }

    fn parts(
        &mut self,
        received: Received<'_>,
        _: &Buffers,
        mut take: impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<(), Stop> {
        if let Some(Event::Interim(interim)) = self.event.take_if(|event| matches!(event, Event::Interim(_)))
        {
            let head = head(interim.status(), interim.headers(), Framing::Length, None);
            return take(Part::Interim(&head)).map(drop);
        }
        let slice = received.slice();
        let mut data = slice;
        let mut taken = None;
        if let State::Body(_, untaken) = &mut self.response
            && let Some(mut first) = untaken.take()
        {
            let is_joined = !first.beginning.is_empty();
            first.beginning.extend_from_slice(slice);
            let is_known = !first.beginning.is_empty() || self.event.is_some();
            let beginning = is_known.then_some(&first.beginning[..]);
            let head = head(first.head.status, &first.head.headers, first.framing, beginning);
            if take(Part::Head(&head))? == Take::Later {
                *untaken = Some(first);
                return Ok(());
            }
            if is_joined {
                data = &taken.insert(first).beginning;
            }
        }
        if !data.is_empty() {
            take(Part::Data { data, verbatim: None })?;
        }
        let last = match self.event.take() {
            Some(Event::End(trailers)) => Part::End { trailers, verbatim: None },
            Some(Event::Cut(cause)) => Part::Cut(cause),
            Some(Event::Interim(_)) | None => return Ok(()),
        };
        self.response = State::Ended;
        take(last).map(drop)
    }

    fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    fn write(&mut self, cx: &mut Context<'_>, _: &[u8], _: &Buffers) -> io::Result<()> {
        let data = self.writer.take_payload();
        if let Some(head) = self.head.take() {
            let is_empty = data.is_empty() && self.writer.last().is_some_and(HeaderMap::is_empty);
            match self.place.as_ref().and_then(|place| place.send(head, is_empty)) {
                Some((waiting, request)) => {
                    (self.response, self.request) = (State::Waiting(waiting), Some(request));
                }
                None => self.event = Some(Event::Cut(SendFailure::Closed)),
            }
        }
        let Some(request) = &mut self.request else { return Ok(()) };
        if !data.is_empty() {
            request.push(data.into());
        }
        if let Some(trailers) = self.writer.last() {
            request.end(trailers);
        }
        let _flushed = request.poll_flush(cx);
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, _: &Buffers) -> Poll<io::Result<()>> {
        self.request.as_mut().map_or(Poll::Ready(()), |request| request.poll_flush(cx)).map(Ok)
    }
}

impl Up for Http2Up {
    fn request(&mut self, parts: &Parts, received: &[u8], framing: Framing) {
        self.is_head = parts.method == Method::HEAD;
        match request_head(parts) {
            Ok(head) => self.head = Some(head),
            Err(_) => self.event = Some(Event::Cut(SendFailure::Invalid)),
        }
        let (parts, received) = (parts.clone(), Bytes::copy_from_slice(received));
        self.kept = Some(Box::new(Unanswered {
            parts,
            received,
            framing,
            slices: Vec::new(),
            is_reused: self.is_reused,
        }));
    }

    fn take_slot(&mut self) -> Option<Permit> {
        self.slot.take()
    }

    fn release(&mut self, _: bool) {
        self.response = State::Ended;
        self.request = None;
    }

    fn may_repeat(&self) -> bool {
        false
    }

    fn take_back(&mut self, cause: &SendFailure) -> Option<Unanswered> {
        let mut kept = self.kept.take()?;
        match &mut self.request {
            Some(request) if cause.is_unprocessed() => kept.slices = request.take_back()?,
            Some(_) => return None,
            // The connection took nothing.
            None => {}
        }
        self.place = None;
        Some(*kept)
    }
}
