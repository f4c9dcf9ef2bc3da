//! A connection to an upstream by HTTP/1.1, for one request.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode};
use http1::{
    Body, Fault, ResponseBody, StatusLine, Table, Version, may_be_whole, names, response, response_body,
};

use super::fields;
use crate::capacity::Permit;
use crate::conn::idle::IdlePool;
use crate::conn::tunnel::UpstreamIo;
use crate::conn::upstream_socket::UpstreamSocket;
use crate::request::headers;
use crate::request::in_flight::{Carrier, InFlight};
use crate::request::reject::Stop;
use crate::wire::failure::SendFailure;
use crate::wire::writer::Writer;
use crate::wire::{Buffers, Framing, Head, Part, Received, Take, Up, Wire};

/// A connection with its request.
pub(crate) struct Http1Up {
    writer: Writer,
    // Each frame uses these fields.
    state: State,
    /// The socket, until the exchange has ended.
    socket: Option<UpstreamSocket>,
    /// The place of the request among the upstream's active connections, until another attempt has it.
    slot: Option<Permit>,
    /// The pool of the connection.
    pool: Rc<IdlePool>,
    /// True if the response has no body: the method is `HEAD`.
    is_head: bool,
    /// True while the connection may carry another request, as far as is known.
    is_kept: bool,
    /// True if the length of the body was unknown at its beginning.
    is_streamed: bool,
    /// True if the connection carried a request before this one, and nothing of this one was sent.
    may_repeat: bool,
}

/// The state of the response.
enum State {
    /// Its head is expected.
    Head {
        /// The bytes of an incomplete head, or of one that was not taken; usually none.
        torn: Vec<u8>,
        /// True if it is whole, and was not taken.
        is_whole: bool,
    },
    /// Its body is expected.
    Body(Body),
    /// The server switched protocols; these bytes follow its head.
    Switched(Bytes),
    /// It has ended, or is truncated.
    Ended,
}

impl Http1Up {
    /// A connection for one request. `is_reused`: it carried another request before; `slot`: its place at the upstream.
    pub(crate) fn new(
        (mut socket, is_reused): (UpstreamSocket, bool),
        slot: Permit,
        pool: &Rc<IdlePool>,
        in_flight: &InFlight,
    ) -> Self {
        socket.charge(in_flight.holder.clone());
        in_flight.carrier.set(Carrier::Socket);
        Self {
            socket: Some(socket),
            slot: Some(slot),
            pool: Rc::clone(pool),
            writer: Writer::default(),
            state: State::Head { torn: Vec::new(), is_whole: false },
            is_head: false,
            is_kept: true,
            is_streamed: false,
            may_repeat: is_reused,
        }
    }

    /// Takes over the request of another connection, on which nothing of it was sent.
    pub(crate) fn take_over(&mut self, other: &mut Self) {
        self.writer = std::mem::take(&mut other.writer);
        (self.is_head, self.is_kept) = (other.is_head, other.is_kept);
    }

    /// Returns the socket, if the server switched protocols.
    pub(crate) fn into_io(self) -> Option<UpstreamIo> {
        let State::Switched(first) = self.state else { return None };
        let (stream, place) = self.socket?.into_parts();
        Some(UpstreamIo { stream, first, places: (self.slot?, place), session: None })
    }

    /// Reads heads, of which the last is that of the response. Returns the position behind that; `None` if it is incomplete
    /// or was not taken. `last`: the reason why no more bytes follow, if none do.
    fn heads(
        &mut self,
        bytes: &[u8],
        last: Option<SendFailure>,
        buffers: &Buffers,
        take: &mut impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<Option<usize>, Stop> {
        let (mut from, is_last) = (0, last.is_some());
        let failure = loop {
            let mut table = Table::default();
            let parsed = match response(&bytes[from..], &mut table) {
                Ok(Some(parsed)) => parsed,
                Ok(None) => {
                    if let Some(last) = last {
                        break last;
                    }
                    self.state = State::Head { torn: bytes[from..].to_vec(), is_whole: false };
                    return Ok(None);
                }
                Err(Fault::ManyFields | Fault::LongHead) => break SendFailure::HeadTooLarge,
                Err(_) => break SendFailure::Invalid,
            };
            let end = from + parsed.len;
            let mut map = buffers.fields.borrow_mut();
            let copy = buffers.keep(&bytes[from..end]);
            let status = StatusCode::from_u16(parsed.start.code);
            let mapped = fields::map(&mut map, parsed.lines, &copy, bytes[from..].as_ptr());
            let (Ok(status), Some(())) = (status, mapped) else { break SendFailure::Invalid };
            headers::make_canonical(&mut map);
            let (reason, lines) = (parsed.start.reason, parsed.lines);
            let framing = Framing::Length;
            let head = Head { status, reason, fields: &map, lines, framing, beginning: None };
            if status == StatusCode::SWITCHING_PROTOCOLS {
                take(Part::Head(&Head { beginning: Some(&[]), ..head }))?;
                self.state = State::Switched(Bytes::copy_from_slice(&bytes[end..]));
                return Ok(None);
            }
            if status.is_informational() {
                take(Part::Interim(&head))?;
                from = end;
                continue;
            }
            let Ok(body) = self.body(&parsed, &map) else { break SendFailure::Invalid };
            let framing = match body {
                Body::Chunked(_) => Framing::Chunked,
                Body::Close => Framing::Close,
                Body::Length(_) => Framing::Length,
            };
            let beginning = beginning(body.clone(), bytes, end);
            let beginning = beginning.or(is_last.then_some(&[]));
            if take(Part::Head(&Head { framing, beginning, ..head }))? == Take::Later {
                self.state = State::Head { torn: bytes[from..].to_vec(), is_whole: true };
                return Ok(None);
            }
            self.state = State::Body(body);
            return Ok(Some(end));
        };
        self.state = State::Ended;
        take(Part::Cut(failure))?;
        Ok(None)
    }

    /// Returns the body of a response, by its head.
    fn body(&mut self, head: &http1::Head<'_, '_, StatusLine<'_>>, map: &HeaderMap) -> Result<Body, Fault> {
        let ResponseBody { body, is_reusable } = response_body(head, self.is_head)?;
        self.is_streamed = !matches!(body, Body::Length(_));
        self.is_kept &=
            is_reusable && head.version == Version::Http11 && !headers::lists(map, &CONNECTION, "close");
        Ok(body)
    }
}

/// The first payload of a body that begins at `at`; empty if it has none, and `None` if it has not arrived.
fn beginning(mut body: Body, bytes: &[u8], mut at: usize) -> Option<&[u8]> {
    match body.next(bytes, &mut at) {
        Ok(Some(http1::Part::Data { data, .. })) => Some(&bytes[data]),
        Ok(Some(http1::Part::End { .. })) | Err(_) => Some(&[]),
        Ok(None) => None,
    }
}

/// Writes bytes of a request, which is not repeated once some were sent.
fn send(
    socket: &mut UpstreamSocket,
    cx: &mut Context<'_>,
    bytes: &[u8],
    may_repeat: &mut bool,
) -> Poll<io::Result<usize>> {
    let written = ready!(socket.poll_write(cx, bytes))?;
    *may_repeat = false;
    Poll::Ready(Ok(written))
}

impl Wire for Http1Up {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Ok(0)) };
        socket.poll_read(cx, buffer)
    }

    fn parts(
        &mut self,
        received: Received<'_>,
        buffers: &Buffers,
        mut take: impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<(), Stop> {
        let joined;
        let (mut bytes, mut at, mut is_joined) = (received.slice(), 0, false);
        let (is_end, last) = match received {
            Received::Slice(_) => (false, None),
            Received::End => (true, Some(SendFailure::Closed)),
            Received::Failed(failure) => (false, Some(failure)),
        };
        let is_last = last.is_some();
        if let State::Head { torn, is_whole } = &mut self.state {
            if !torn.is_empty() {
                torn.extend_from_slice(bytes);
                if !(*is_whole || is_last || may_be_whole(bytes, torn.len())) {
                    return Ok(());
                }
                joined = std::mem::take(torn);
                (bytes, is_joined) = (&joined[..], true);
            }
            let Some(end) = self.heads(bytes, last, buffers, &mut take)? else { return Ok(()) };
            at = end;
        }
        let State::Body(body) = &mut self.state else { return Ok(()) };
        let end = loop {
            match body.next(bytes, &mut at) {
                // Ranges of joined bytes are not those of the slice.
                Ok(Some(http1::Part::Data { data, verbatim })) => {
                    let verbatim = verbatim.filter(|_| !is_joined);
                    take(Part::Data { data: &bytes[data], verbatim })?;
                }
                Ok(Some(http1::Part::End { verbatim, end })) => {
                    self.is_kept &= end == bytes.len();
                    let verbatim = verbatim.filter(|_| !is_joined);
                    match fields::trailers(body.trailers()) {
                        Some(trailers) => break Part::End { trailers, verbatim },
                        None => break Part::Cut(SendFailure::Invalid),
                    }
                }
                // Such a body is complete only if the connection ends in order.
                Ok(None) if is_end && matches!(body, Body::Close) => {
                    break Part::End { trailers: HeaderMap::new(), verbatim: None };
                }
                Ok(None) if !is_last => return Ok(()),
                Ok(None) | Err(_) => {
                    self.is_kept = false;
                    break Part::Cut(SendFailure::Closed);
                }
            }
        };
        self.state = State::Ended;
        take(end).map(drop)
    }

    fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    fn write(&mut self, cx: &mut Context<'_>, slice: &[u8], buffers: &Buffers) -> io::Result<()> {
        let Self { socket: Some(socket), writer, may_repeat, .. } = self else { return Ok(()) };
        writer.write(slice, buffers, |bytes| send(socket, cx, bytes, may_repeat))?;
        // A session keeps records that its socket did not take.
        let _flushed = socket.poll_flush(cx)?;
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<io::Result<()>> {
        let Self { socket: Some(socket), writer, may_repeat, .. } = self else { return Poll::Ready(Ok(())) };
        ready!(writer.poll_flush(buffers, |bytes| send(socket, cx, bytes, may_repeat)))?;
        socket.poll_flush(cx)
    }
}

impl Up for Http1Up {
    fn request(&mut self, parts: &Parts, received: &[u8], framing: Framing) {
        self.is_head = parts.method == Method::HEAD;
        // Of a refused switch, servers differ in where the body ends.
        self.is_kept &= !parts.headers.contains_key(UPGRADE);
        let is_chunked = parts.headers.contains_key(TRANSFER_ENCODING);
        let is_same = is_chunked == (framing == Framing::Chunked);
        let out = self.writer.head(is_chunked, is_same, Some(&parts.headers));
        out.extend_from_slice(parts.method.as_str().as_bytes());
        out.push(b' ');
        let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        out.extend_from_slice(target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        fields::write(out, &parts.headers, names(received), |_| true);
        out.extend_from_slice(b"\r\n");
    }

    fn may_repeat(&self) -> bool {
        self.may_repeat
    }

    fn take_slot(&mut self) -> Option<Permit> {
        self.slot.take()
    }

    fn release(&mut self, may_stay: bool) {
        if let Some(socket) = self.socket.take().filter(|_| may_stay && self.is_kept) {
            self.pool.give(socket, self.is_streamed);
        }
    }
}
