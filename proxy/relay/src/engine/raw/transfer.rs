//! The transfer of one request: its bytes to the upstream, then the response to the client, each slice in the turn in
//! which it was read (law 2).

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use meter::Tick;
use tokio::task::coop;
use usage::Cuts;

use super::Raw;
use super::framing::{Chunks, Framing, LAST_CHUNK, Part, write_chunk};
use super::head::{self, Lines, StatusLine};
use super::pool::{Connection, Pool};
use crate::capacity::Permit;
use crate::engine::net::socket::Output;
use crate::request::answer::Answer;
use crate::request::in_flight::{InFlight, UploadState};
use crate::request::whole::Ready;
use crate::request::{headers, policy};
use crate::response::edit::Edit;
use crate::{Passthrough, clock, limits};

/// One request and its response. Dropping it before the response has ended means that the client left.
pub(super) struct Transfer {
    // Before `in_flight`: the socket is closed when the exchange ends.
    connection: Option<Connection>,
    /// The request, until all of it was sent.
    unsent: Vec<u8>,
    /// The number of its bytes that were sent.
    sent: usize,
    state: State,
    /// Bytes that the client's socket did not take; nothing is read meanwhile.
    backlog: Vec<u8>,
    /// The editor of the response body, if it is edited.
    edit: Option<Box<Edit>>,
    /// Slices that were shown to the exchange.
    slices: u32,
    /// True once an event of the client's socket wakes the task.
    is_watching: Cell<bool>,
    /// True if the length of the body was unknown at its beginning.
    streamed: bool,
    /// True if the server keeps the connection.
    is_kept: bool,
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
    Body(Framing),
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
    pub(super) fn new(ready: Ready, unsent: Vec<u8>, slot: Permit) -> Self {
        Self {
            connection: None,
            unsent,
            sent: 0,
            state: State::Head { torn: Vec::new(), interim: 0 },
            backlog: Vec::new(),
            edit: None,
            slices: 0,
            is_watching: Cell::new(false),
            streamed: false,
            is_kept: false,
            slot,
            in_flight: ready.in_flight,
        }
    }

    pub(super) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Sets the connection that carries the request.
    pub(super) fn set_connection(&mut self, mut connection: Connection) {
        connection.place.charge(self.in_flight.holder.clone());
        self.connection = Some(connection);
        self.in_flight.is_carried.set(true);
        self.in_flight.has_socket.set(true);
    }

    /// Sends, reads and forwards as far as possible.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, raw: &Raw, pool: &Pool) -> Poll<Finish> {
        let mut left_bytes = limits::TURN_READ_BYTES;
        loop {
            while !self.backlog.is_empty() {
                match self.in_flight.client.poll_write(cx, Output::Slice(&self.backlog)) {
                    Poll::Ready(Ok(written)) if written == self.backlog.len() => self.backlog = Vec::new(),
                    Poll::Ready(Ok(written)) => drop(self.backlog.drain(..written)),
                    Poll::Ready(Err(_)) => return Poll::Ready(self.gone()),
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
                    let held = self.edit.as_mut().and_then(|edit| edit.poll_overdue(cx));
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
                return Poll::Ready(self.gone());
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
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(self.gone()),
                Poll::Ready(Ok(read)) => client.put_back(&buffer[..read]),
            }
        }
        Poll::Pending
    }

    /// Notes that the client left.
    fn gone(&self) -> Finish {
        self.in_flight.metered.borrow_mut().with(|metering| metering.client_left(clock::now()));
        Finish::Gone
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
        let mut metered = self.in_flight.metered.borrow_mut();
        metered.with(|metering| if is_cut { metering.upstream_cut(at) } else { metering.response_end(at) });
        metered.finish();
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
            let mut table = head::table();
            let parsed = match head::response(&bytes[from..], &mut table) {
                Ok(Some(parsed)) => parsed,
                Ok(None) if bytes.len() - from <= limits::BUFFER_BYTES => {
                    *torn = bytes[from..].to_vec();
                    return Ok(0..0);
                }
                Ok(None) | Err(httparse::Error::TooManyHeaders) => {
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
            self.head(parsed.start, parsed.lines, &bytes[from..end], at, (raw, out))?;
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
        start: StatusLine<'_>,
        lines: Lines<'_, '_>,
        bytes: &[u8],
        at: Tick,
        (raw, out): (&Raw, &mut Vec<u8>),
    ) -> Result<(), Answer> {
        let in_flight = &self.in_flight;
        let invalid = |fault| Answer::invalid(in_flight.upstream_name(), fault);
        let not_http = || invalid("did not answer in valid HTTP");
        let mut fields = raw.fields.borrow_mut();
        head::map(&mut fields, lines, &Bytes::copy_from_slice(bytes), bytes.as_ptr()).ok_or_else(not_http)?;
        let map = &*fields;
        let status = StatusCode::from_u16(start.code).map_err(|_| not_http())?;
        policy::check_response(status, map, false).map_err(invalid)?;
        let shown = {
            let mut metered = in_flight.metered.borrow_mut();
            let shown = metered.with(|metering| metering.response_head(start.code, map, at));
            if shown == Some(None) {
                in_flight.worker.passthrough(Passthrough::Path);
                metered.finish();
            }
            shown.flatten().unwrap_or_default()
        };
        if let Some(reason) = shown.unread {
            in_flight.worker.passthrough(reason);
        }
        let framing = framing(status, map).ok_or_else(not_http)?;
        let is_chunked = matches!(framing, Framing::Chunked(_));
        let is_reframed = matches!(framing, Framing::Close) || shown.edited && !is_chunked;
        self.streamed = !matches!(framing, Framing::Length(_));
        self.is_kept = start.is_http11
            && !matches!(framing, Framing::Close)
            && (!map.contains_key(CONNECTION) || !headers::lists(map, &CONNECTION, "close"));
        self.edit = shown.edited.then(Box::default);
        in_flight.answering.set(true);

        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(start.reason.as_bytes());
        out.extend_from_slice(b"\r\n");
        let has_named = map.contains_key(CONNECTION);
        for line in lines {
            let is = |field: &str| line.name.eq_ignore_ascii_case(field);
            let is_length = is("content-length") && (is_chunked || is_reframed);
            let is_framing = is("transfer-encoding") || is("content-length");
            let is_named = has_named && !is_framing && headers::lists(map, &CONNECTION, line.name);
            if !is_length && !is_named && !head::is_hop_by_hop(line.name) {
                head::write(out, line.name, line.value);
            }
        }
        if is_reframed {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        if in_flight.worker.draining.get() {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        self.state = State::Body(framing);
        in_flight.spent(at);
        Ok(())
    }

    /// Reads the body from `from` on. Returns the range that goes to the client unchanged, after `out`.
    fn body(&mut self, slice: &[u8], from: usize, at: Tick, out: &mut Vec<u8>) -> Range<usize> {
        let mut state = std::mem::replace(&mut self.state, State::Cut);
        let State::Body(framing) = &mut state else { return 0..0 };
        let mut run = None;
        let ended = match framing {
            Framing::Length(left) => {
                let here = ((slice.len() - from) as u64).min(*left) as usize;
                *left -= here as u64;
                let data = from..from + here;
                let ended = *left == 0;
                if self.edit.is_none() {
                    self.show(&slice[data.clone()], at);
                    run = Some(data.clone());
                } else {
                    self.edited(&slice[data.clone()], at, ended, out);
                    if ended {
                        out.extend_from_slice(LAST_CHUNK);
                    }
                }
                self.is_kept &= data.end == slice.len();
                ended.then_some(()).ok_or(slice.is_empty())
            }
            Framing::Close => {
                let ended = slice.len() == from && from == 0;
                self.edited(&slice[from..], at, ended, out);
                if ended {
                    out.extend_from_slice(LAST_CHUNK);
                }
                ended.then_some(()).ok_or(false)
            }
            Framing::Chunked(chunks) => self.chunks(chunks, slice, from, at, (&mut run, out)),
        };
        match ended {
            Ok(()) => self.state = State::Ended,
            Err(false) => self.state = state,
            // It is cut; held bytes go first.
            Err(true) => {
                if let Some(held) = self.edit.as_mut().and_then(|edit| edit.release()) {
                    write_chunk(out, &held);
                }
            }
        }
        run.unwrap_or(0..0)
    }

    /// Reads chunks. Returns an error until the body has ended: true if it is cut.
    fn chunks(
        &mut self,
        chunks: &mut Chunks,
        slice: &[u8],
        from: usize,
        at: Tick,
        (run, out): (&mut Option<Range<usize>>, &mut Vec<u8>),
    ) -> Result<(), bool> {
        let mut here = from;
        let mut done = from;
        let is_edited = self.edit.is_some();
        let flush = |run: &mut Option<Range<usize>>, out: &mut Vec<u8>| {
            if let Some(run) = run.take() {
                out.extend_from_slice(&slice[run]);
            }
        };
        if slice.is_empty() {
            return Err(true);
        }
        loop {
            let part = match chunks.next(slice, &mut here) {
                Ok(Some(part)) => part,
                Ok(None) => {
                    if !is_edited {
                        *run = Some(from..slice.len());
                    }
                    return Err(false);
                }
                Err(_invalid) => {
                    match is_edited {
                        true => flush(run, out),
                        false => *run = Some(from..done),
                    }
                    return Err(true);
                }
            };
            match part {
                Part::Data { data, .. } if !is_edited => {
                    self.show(&slice[data], at);
                    done = here;
                }
                // A chunk whose line was forwarded cannot become shorter: only whole chunks are forwarded unchanged.
                Part::Data { data, whole } => {
                    let changed = self.show_edited(&slice[data.clone()], at, false);
                    match (changed, whole) {
                        (None, Some(whole)) => {
                            let start = run.take().map_or(whole.start, |run| run.start);
                            *run = Some(start..whole.end);
                        }
                        (changed, _) => {
                            flush(run, out);
                            write_chunk(out, changed.as_deref().unwrap_or(&slice[data]));
                        }
                    }
                }
                Part::End { line, end } => {
                    self.is_kept &= end == slice.len();
                    if !is_edited {
                        *run = Some(from..end);
                        return Ok(());
                    }
                    let held = self.edit.as_mut().and_then(|edit| edit.release());
                    match (held, line) {
                        (None, Some(line)) => {
                            let start = run.take().map_or(line, |run| run.start);
                            *run = Some(start..end);
                        }
                        (held, _) => {
                            flush(run, out);
                            write_chunk(out, held.as_deref().unwrap_or_default());
                            out.extend_from_slice(LAST_CHUNK);
                        }
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Shows data to the exchange, and writes what goes to the client as one chunk.
    fn edited(&mut self, data: &[u8], at: Tick, last: bool, out: &mut Vec<u8>) {
        if self.edit.is_none() {
            self.show(data, at);
            return write_chunk(out, data);
        }
        let changed = self.show_edited(data, at, last);
        write_chunk(out, changed.as_deref().unwrap_or(data));
        if last && let Some(held) = self.edit.as_mut().and_then(|edit| edit.release()) {
            write_chunk(out, &held);
        }
    }

    /// Shows data to the exchange. Returns what goes to the client in its place; `None` if that is the same.
    fn show_edited(&mut self, data: &[u8], at: Tick, last: bool) -> Option<Bytes> {
        let Self { edit, in_flight, slices, .. } = self;
        let edit = edit.as_deref_mut()?;
        let is_watching = show(in_flight, slices, data, at, &mut edit.cuts);
        if edit.passes(data.len()) {
            return None;
        }
        Some(edit.apply(in_flight, Bytes::copy_from_slice(data), last || !is_watching))
    }

    /// Shows data to the exchange, of a body that is not edited.
    fn show(&mut self, data: &[u8], at: Tick) {
        show(&self.in_flight, &mut self.slices, data, at, &mut Cuts::default());
    }
}

/// Shows data to the exchange; one slice in [`limits::SPENT_SAMPLE`] is timed. Returns false if there is no exchange,
/// or its meter failed.
fn show(in_flight: &InFlight, slices: &mut u32, data: &[u8], at: Tick, cuts: &mut Cuts) -> bool {
    let mut metered = in_flight.metered.borrow_mut();
    if !metered.is_watching() {
        return false;
    }
    *slices = slices.wrapping_add(1);
    let begun = slices.is_multiple_of(limits::SPENT_SAMPLE).then(clock::read);
    metered.with(|metering| metering.response_body(data, at, cuts));
    if let Some(begun) = begun {
        let ns = clock::read().since(begun).saturating_mul(u64::from(limits::SPENT_SAMPLE));
        metered.with(|metering| metering.spent(ns));
    }
    metered.is_watching()
}

/// The framing of a response to a `POST`; `None` if it is ambiguous (RFC 9112 §6.3).
fn framing(status: StatusCode, map: &HeaderMap) -> Option<Framing> {
    if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return Some(Framing::Length(0));
    }
    if map.contains_key(TRANSFER_ENCODING) {
        return Some(Framing::Chunked(Chunks::new()));
    }
    let mut lengths = map.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else { return Some(Framing::Close) };
    let is_one = lengths.all(|other| other == length) && length.as_bytes().iter().all(u8::is_ascii_digit);
    Some(Framing::Length(length.to_str().ok().filter(|_| is_one)?.parse().ok()?))
}
