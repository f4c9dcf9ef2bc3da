//! The transfer of one request: its bytes to the upstream, then the response to the client, each slice in the turn in
//! which it was read (law 2).

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http::header::CONNECTION;
use http1::{Body, Fault, Head, LAST_CHUNK, Part, ResponseBody, StatusLine, Table, Version};
use http1::{response, response_body, write_chunk, write_field};
use meter::Tick;
use tokio::task::coop;

use super::Raw;
use super::fields;
use super::pool::{Connection, Pool};
use crate::capacity::Permit;
use crate::engine::net::socket::Output;
use crate::request::answer::Answer;
use crate::request::headers;
use crate::request::in_flight::{Carrier, InFlight, UploadState};
use crate::response::{Response, Verdict};
use crate::{clock, limits};

/// One request and its response. Dropping it before the response has ended means that the client left.
pub(super) struct Transfer {
    // Before `response` and `in_flight`: the socket is closed when the exchange ends.
    connection: Option<Connection>,
    /// The request, until all of it was sent.
    unsent: Vec<u8>,
    /// The number of its bytes that were sent.
    sent: usize,
    state: State,
    /// Bytes that the client's socket did not take; nothing is read meanwhile.
    backlog: Vec<u8>,
    /// The decisions about the response, once its head has arrived.
    response: Option<Response>,
    /// True once an event of the client's socket wakes the task.
    is_watching: Cell<bool>,
    /// True if the length of the body was unknown at its beginning.
    streamed: bool,
    /// True if the server keeps the connection.
    is_kept: bool,
    /// True if the client gets chunks of another body than a chunked one.
    is_reframed: bool,
    /// Its place among the upstream's active connections.
    pub(super) slot: Permit,
    in_flight: Rc<InFlight>,
}

/// The state of the response.
enum State {
    /// Its head is expected.
    Head {
        /// The first bytes of an incomplete head; most heads arrive whole.
        torn: Vec<u8>,
        /// Interim responses so far.
        interim: usize,
    },
    /// Its body is expected.
    Body(Body),
    /// All of it was forwarded.
    Ended,
    /// It is truncated.
    Cut,
}

/// The end of a request.
pub(super) enum Finish {
    /// The client has its response.
    Done,
    /// The connection ends with the response.
    Close,
    /// The client left.
    Gone,
    /// There is no response.
    Failed(Answer),
}

impl Transfer {
    /// A request to send: its bytes, and its place at the upstream, which is not taken yet.
    pub(super) fn new(in_flight: Rc<InFlight>, unsent: Vec<u8>, slot: Permit) -> Self {
        Self {
            connection: None,
            unsent,
            sent: 0,
            state: State::Head { torn: Vec::new(), interim: 0 },
            backlog: Vec::new(),
            response: None,
            is_watching: Cell::new(false),
            streamed: false,
            is_kept: false,
            is_reframed: false,
            slot,
            in_flight,
        }
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Sets the connection that carries the request.
    pub(super) fn set_connection(&mut self, mut connection: Connection) {
        connection.place.charge(self.in_flight.holder.clone());
        self.connection = Some(connection);
        self.in_flight.carrier.set(Carrier::Socket);
    }

    /// Sends, reads and forwards as far as possible.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, raw: &Raw, pool: &Pool) -> Poll<Finish> {
        let mut left_bytes = limits::TURN_READ_BYTES;
        loop {
            while !self.backlog.is_empty() {
                match self.in_flight.client.poll_write(cx, Output::Slice(&self.backlog)) {
                    Poll::Ready(Ok(written)) if written == self.backlog.len() => self.backlog = Vec::new(),
                    Poll::Ready(Ok(written)) => drop(self.backlog.drain(..written)),
                    Poll::Ready(Err(_)) => return Poll::Ready(Finish::Gone),
                    Poll::Pending => return self.poll_client(cx, raw),
                }
            }
            match self.state {
                State::Ended => return Poll::Ready(Finish::Done),
                State::Cut => return Poll::Ready(Finish::Close),
                State::Head { .. } | State::Body(_) => {}
            }
            let Some(connection) = &mut self.connection else { return Poll::Ready(Finish::Close) };
            let socket = &mut connection.socket;
            if self.sent < self.unsent.len() {
                match socket.poll_write(cx, &self.unsent[self.sent..]) {
                    Poll::Ready(Ok(written)) if written > 0 => {
                        self.sent += written;
                        if self.sent == self.unsent.len() {
                            raw.put_back(std::mem::take(&mut self.unsent));
                            self.sent = 0;
                            self.was_sent();
                        }
                        continue;
                    }
                    Poll::Ready(_) => return Poll::Ready(self.closed()),
                    Poll::Pending => return self.poll_client(cx, raw),
                }
            }
            if left_bytes == 0 {
                // Other connections have their turn first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut buffer = raw.read.borrow_mut();
            let slice = match socket.poll_read(cx, &mut buffer[..left_bytes]) {
                Poll::Ready(Ok(read)) => &buffer[..read],
                Poll::Ready(Err(_)) if matches!(self.state, State::Head { .. }) => &[],
                Poll::Ready(Err(_)) => {
                    self.state = State::Cut;
                    self.end(clock::now(), pool);
                    continue;
                }
                Poll::Pending => {
                    drop(buffer);
                    let held = self.response.as_mut().and_then(|response| response.poll_overdue(cx));
                    if let Some(held) = held {
                        write_chunk(&mut self.backlog, &held);
                        continue;
                    }
                    return self.poll_client(cx, raw);
                }
            };
            left_bytes -= slice.len();
            let at = clock::now();
            let mut out = raw.out.borrow_mut();
            out.clear();
            let run = match self.read(slice, at, (raw, &mut out)) {
                Ok(run) => &slice[run],
                Err(answer) => return Poll::Ready(Finish::Failed(answer)),
            };
            let whole = if out.is_empty() {
                run
            } else {
                out.extend_from_slice(run);
                &out[..]
            };
            if !self.write(cx, whole) {
                return Poll::Ready(Finish::Gone);
            }
            drop(out);
            if matches!(self.state, State::Ended | State::Cut) {
                self.end(at, pool);
            } else {
                self.in_flight.waited();
            }
        }
    }

    /// Watches the client. Ready once it has left; further requests are kept for later.
    pub(super) fn poll_client(&self, cx: &mut Context<'_>, raw: &Raw) -> Poll<Finish> {
        let client = &self.in_flight.client;
        if self.is_watching.get() && client.is_quiet() {
            return Poll::Pending;
        }
        let mut buffer = raw.read.borrow_mut();
        while client.first_len() < limits::BUFFER_BYTES {
            // Without it, tokio registers no task.
            let registers = coop::has_budget_remaining();
            match client.poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    self.is_watching.set(registers);
                    break;
                }
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Finish::Gone),
                Poll::Ready(Ok(read)) => client.put_back(&buffer[..read]),
            }
        }
        Poll::Pending
    }

    /// Notes that the request was sent completely.
    fn was_sent(&self) {
        self.in_flight.metered.borrow_mut().with(|metering| metering.exchange.sent());
        if let UploadState::Complete(at) = self.in_flight.upload.get() {
            self.in_flight.spent(at);
        }
    }

    /// The upstream closed the connection before its response.
    fn closed(&self) -> Finish {
        Finish::Failed(Answer::broken(self.in_flight.upstream_name(), "closed the connection"))
    }

    /// Writes to the client, and keeps what its socket does not take; false if the client left.
    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let written = match self.in_flight.client.poll_write(cx, Output::Slice(bytes)) {
            Poll::Ready(Ok(written)) => written,
            Poll::Ready(Err(_)) => return false,
            Poll::Pending => 0,
        };
        self.backlog.extend_from_slice(&bytes[written..]);
        true
    }

    /// Ends the exchange, and returns the connection to the pool if another request may be sent.
    fn end(&mut self, at: Tick, pool: &Pool) {
        let is_cut = matches!(self.state, State::Cut);
        if let Some(response) = &mut self.response {
            if is_cut { response.cut(at) } else { response.end(at) }
        }
        let connection = self.connection.take();
        let is_leaving = self.in_flight.worker.leaving.is_ordered();
        if let Some(connection) = connection.filter(|_| self.is_kept && !is_cut && !is_leaving) {
            pool.give(connection, self.streamed, at);
        }
    }

    /// Reads a slice of the response, empty at its end. Bytes for the client that are made anew go to `out`, before
    /// the returned range of the slice.
    fn read(
        &mut self,
        slice: &[u8],
        at: Tick,
        (raw, out): (&Raw, &mut Vec<u8>),
    ) -> Result<Range<usize>, Answer> {
        let State::Head { torn, interim } = &mut self.state else { return Ok(self.body(slice, 0, at, out)) };
        let name = self.in_flight.upstream_name();
        if slice.is_empty() {
            return Err(Answer::broken(name, "closed the connection"));
        }
        let invalid = |fault| Answer::invalid(self.in_flight.upstream_name(), fault);
        let mut joined = std::mem::take(torn);
        let is_torn = !joined.is_empty();
        if is_torn {
            joined.extend_from_slice(slice);
        }
        let bytes = if is_torn { &joined[..] } else { slice };
        let mut from = 0;
        loop {
            let mut table = Table::new();
            let parsed = match response(&bytes[from..], &mut table) {
                Ok(Some(parsed)) => parsed,
                Ok(None) => {
                    *torn = bytes[from..].to_vec();
                    return Ok(0..0);
                }
                Err(Fault::ManyFields | Fault::LongHead) => {
                    return Err(invalid("answered with a head over 64 KiB or 100 fields"));
                }
                Err(_) => return Err(invalid("did not answer in valid HTTP")),
            };
            let end = from + parsed.len;
            if parsed.start.code / 100 == 1 && parsed.start.code != 101 {
                *interim += 1;
                if *interim > limits::INTERIM_RESPONSES {
                    return Err(invalid("sent too many interim responses"));
                }
                from = end;
                continue;
            }
            self.head(&parsed, &bytes[from..end], at, (raw, out))?;
            let run = self.body(bytes, end, at, out);
            if is_torn {
                out.extend_from_slice(&bytes[run]);
                return Ok(0..0);
            }
            return Ok(run);
        }
    }

    /// Reads the head of the response, and makes the one for the client.
    fn head(
        &mut self,
        head: &Head<'_, '_, StatusLine<'_>>,
        bytes: &[u8],
        at: Tick,
        (raw, out): (&Raw, &mut Vec<u8>),
    ) -> Result<(), Answer> {
        let in_flight = &self.in_flight;
        let invalid = |fault| Answer::invalid(in_flight.upstream_name(), fault);
        let not_http = || invalid("did not answer in valid HTTP");
        let mut fields = raw.fields.borrow_mut();
        fields::map(&mut fields, head.lines, &Bytes::copy_from_slice(bytes), bytes.as_ptr())
            .ok_or_else(not_http)?;
        let map = &*fields;
        let status = StatusCode::from_u16(head.start.code).map_err(|_| not_http())?;
        let verdict = Response::head(in_flight, status, map, false, at)?;
        let ResponseBody { body, is_reusable } = response_body(head, false).map_err(|_| not_http())?;
        let is_chunked = matches!(body, Body::Chunked(_));
        self.streamed = !matches!(body, Body::Length(_));
        let response = match verdict {
            Verdict::Known(response) => response,
            // This engine does not wait for the first byte.
            Verdict::ByBody(undecided) => undecided.decide(b"", !self.streamed),
        };
        let is_edited = response.is_edited();
        self.is_reframed = matches!(body, Body::Close) || is_edited && !is_chunked;
        self.is_kept = is_reusable
            && head.version == Version::Http11
            && (!map.contains_key(CONNECTION) || !headers::lists(map, &CONNECTION, "close"));
        self.response = Some(response);
        in_flight.watch();

        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(head.start.reason.as_bytes());
        out.extend_from_slice(b"\r\n");
        let has_named = map.contains_key(CONNECTION);
        for line in head.lines.iter() {
            let is = |field: &str| line.name.eq_ignore_ascii_case(field);
            let is_length = is("content-length") && (is_chunked || self.is_reframed);
            let is_framing = is("transfer-encoding") || is("content-length");
            let is_named = has_named && !is_framing && headers::lists(map, &CONNECTION, line.name);
            if !is_length && !is_named && !http1::is_hop_by_hop(line.name) {
                write_field(out, line.name, line.value);
            }
        }
        if self.is_reframed {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        if in_flight.worker.draining.get() {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        self.state = State::Body(body);
        in_flight.spent(at);
        Ok(())
    }

    /// Reads the body from `from` on. Returns the range that goes to the client unchanged, after `out`.
    fn body(&mut self, slice: &[u8], from: usize, at: Tick, out: &mut Vec<u8>) -> Range<usize> {
        let mut state = std::mem::replace(&mut self.state, State::Cut);
        let State::Body(body) = &mut state else { return 0..0 };
        let is_last = slice.is_empty();
        let (mut here, mut run) = (from, Run { slice, range: 0..0 });
        let ended = loop {
            match body.next(slice, &mut here) {
                Ok(Some(Part::Data { data, verbatim })) => {
                    let bytes = &slice[data.clone()];
                    let shared = || Bytes::copy_from_slice(bytes);
                    let response = self.response.as_mut();
                    let changed = response.and_then(|response| response.data(bytes, shared, at, false));
                    match (changed, verbatim.filter(|_| !self.is_reframed)) {
                        (None, Some(range)) => run.extend(range, out),
                        // A chunk whose line was forwarded cannot become shorter: only whole chunks are forwarded
                        // unchanged.
                        (changed, _) => {
                            run.flush(out);
                            write_chunk(out, changed.as_deref().unwrap_or(bytes));
                        }
                    }
                }
                Ok(Some(Part::End { verbatim, end })) => {
                    self.is_kept &= end == slice.len();
                    break Some(verbatim);
                }
                Ok(None) if is_last && matches!(body, Body::Close) => break Some(None),
                Ok(None) if !is_last => {
                    self.state = state;
                    return run.range;
                }
                // It is cut; held bytes go first.
                Ok(None) | Err(_) => break None,
            }
        };
        let held = self.response.as_mut().and_then(Response::release);
        let is_chunked = self.is_reframed || matches!(body, Body::Chunked(_));
        match (held, ended.clone().flatten()) {
            (None, Some(range)) => run.extend(range, out),
            (held, _) if is_chunked => {
                run.flush(out);
                write_chunk(out, held.as_deref().unwrap_or_default());
                if ended.is_some() {
                    out.extend_from_slice(LAST_CHUNK);
                }
            }
            _ => {}
        }
        if ended.is_some() {
            self.state = State::Ended;
        }
        run.range
    }
}

/// A range of a slice that goes to the client unchanged, after all that was made anew.
struct Run<'s> {
    slice: &'s [u8],
    range: Range<usize>,
}

impl Run<'_> {
    /// Adds a range, which usually follows.
    fn extend(&mut self, range: Range<usize>, out: &mut Vec<u8>) {
        if self.range.end != range.start {
            self.flush(out);
            self.range.start = range.start;
        }
        self.range.end = range.end;
    }

    /// Writes the range before what is made anew.
    fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.slice[self.range.clone()]);
        self.range = 0..0;
    }
}
