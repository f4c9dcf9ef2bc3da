//! A connection to an upstream by HTTP/1.1, for one request.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use connect::{Stream, TlsFault};
use http::header::CONNECTION;
use http::{HeaderMap, StatusCode};
use http1::{Body, Fault, ResponseBody, StatusLine, Table, Version, response, response_body};

use super::fields;
use super::upstream_socket::UpstreamSocket;
use crate::capacity::Permit;
use crate::engine::SendFailure;
use crate::engine::net::idle::IdlePool;
use crate::engine::net::tunnel::UpstreamIo;
use crate::request::headers;
use crate::request::in_flight::{Carrier, InFlight};
use crate::request::reject::{Stop, unanswered};
use crate::wire::{Buffers, Framing, Head, Part, Up};

/// A connection with its request.
pub(crate) struct Http1Up {
    /// The socket, from when it is connected until the request has ended.
    socket: Option<UpstreamSocket>,
    /// The place of the request among the upstream's active connections.
    pub(super) slot: Permit,
    /// The pool of the connection.
    pool: Rc<IdlePool<UpstreamSocket>>,
    /// The request, until all of it was sent.
    unsent: Vec<u8>,
    /// The number of its bytes that were sent.
    sent: usize,
    state: State,
    /// True while the server keeps the connection, as far as is known.
    is_kept: bool,
    /// True if the length of the body was unknown at its beginning.
    is_streamed: bool,
    /// True if the connection carried a request before this one.
    is_reused: bool,
    /// The cause of its failure.
    failure: SendFailure,
}

/// The state of the response.
enum State {
    /// Its head is expected.
    Head {
        /// The first bytes of an incomplete head; most heads arrive whole.
        torn: Vec<u8>,
    },
    /// Its body is expected.
    Body(Body),
    /// The server switched protocols. These bytes follow its head.
    Switched(Bytes),
    /// It has ended, or is truncated.
    Ended,
}

impl Http1Up {
    /// A request that is ready to be sent, its place at the upstream, which is not taken yet, and the pool there.
    pub(super) fn new(slot: Permit, pool: Rc<IdlePool<UpstreamSocket>>, unsent: Vec<u8>) -> Self {
        let state = State::Head { torn: Vec::new() };
        Self {
            socket: None,
            slot,
            pool,
            unsent,
            sent: 0,
            state,
            is_kept: false,
            is_streamed: false,
            is_reused: false,
            failure: SendFailure::Closed,
        }
    }

    /// Sets the socket that carries the request. `is_reused`: it carried another one before.
    pub(super) fn connected(&mut self, mut socket: UpstreamSocket, in_flight: &InFlight, is_reused: bool) {
        socket.charge(in_flight.holder.clone());
        in_flight.carrier.set(Carrier::Socket);
        self.socket = Some(socket);
        self.is_reused = is_reused;
    }

    /// Takes the connection after the server switched protocols.
    pub(super) fn into_io(self) -> Option<UpstreamIo<Stream>> {
        let State::Switched(first) = self.state else { return None };
        let (stream, place) = self.socket?.into_parts();
        Some(UpstreamIo { stream, first, places: (Some(self.slot), place) })
    }

    /// Keeps the cause of an error of the socket.
    fn fail(&mut self, error: &io::Error) -> SendFailure {
        self.failure = TlsFault::of_io(error).map_or(SendFailure::Closed, SendFailure::Tls);
        self.failure.clone()
    }

    /// Reads heads, the last of which is the response's. Returns the position behind it; `None` if it is incomplete.
    fn heads(
        &mut self,
        bytes: &[u8],
        (buffers, upstream): (&Buffers, &str),
        take: &mut impl FnMut(Part<'_>) -> Result<(), Stop>,
    ) -> Result<Option<usize>, Stop> {
        let invalid = || unanswered(upstream, SendFailure::Invalid);
        let mut from = 0;
        loop {
            let mut table = Table::new();
            let parsed = match response(&bytes[from..], &mut table) {
                Ok(Some(parsed)) => parsed,
                Ok(None) => {
                    self.state = State::Head { torn: bytes[from..].to_vec() };
                    return Ok(None);
                }
                Err(Fault::ManyFields | Fault::LongHead) => {
                    return Err(unanswered(upstream, SendFailure::HeadTooLarge));
                }
                Err(_) => return Err(invalid()),
            };
            let end = from + parsed.len;
            let mut map = buffers.fields.borrow_mut();
            let copy = Bytes::copy_from_slice(&bytes[from..end]);
            fields::map(&mut map, parsed.lines, &copy, bytes[from..].as_ptr()).ok_or_else(invalid)?;
            let status = StatusCode::from_u16(parsed.start.code).map_err(|_| invalid())?;
            let (reason, lines) = (parsed.start.reason, parsed.lines);
            let head = Head { status, reason, fields: &map, lines, framing: Framing::Length };
            if status == StatusCode::SWITCHING_PROTOCOLS {
                take(Part::Head(&head))?;
                self.state = State::Switched(Bytes::copy_from_slice(&bytes[end..]));
                return Ok(None);
            }
            if status.is_informational() {
                take(Part::Interim(&head))?;
                from = end;
                continue;
            }
            let body = self.body(&parsed, &map);
            let framing = match body {
                Ok(Body::Chunked(_)) => Framing::Chunked,
                Ok(Body::Close) => Framing::Close,
                Ok(Body::Length(_)) | Err(_) => Framing::Length,
            };
            take(Part::Head(&Head { framing, ..head }))?;
            self.state = State::Body(body.map_err(|_fault| invalid())?);
            return Ok(Some(end));
        }
    }

    /// Returns the body of a response by its head.
    fn body(&mut self, head: &http1::Head<'_, '_, StatusLine<'_>>, map: &HeaderMap) -> Result<Body, Fault> {
        let ResponseBody { body, is_reusable } = response_body(head, false)?;
        self.is_streamed = !matches!(body, Body::Length(_));
        self.is_kept = is_reusable
            && head.version == Version::Http11
            && (!map.contains_key(CONNECTION) || !headers::lists(map, &CONNECTION, "close"));
        Ok(body)
    }
}

impl Up for Http1Up {
    fn poll_send(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<Result<(), SendFailure>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Err(SendFailure::Closed)) };
        while self.sent < self.unsent.len() {
            match ready!(socket.poll_write(cx, &self.unsent[self.sent..])) {
                Ok(0) => return Poll::Ready(Err(SendFailure::Closed)),
                Ok(written) => self.sent += written,
                Err(error) => return Poll::Ready(Err(self.fail(&error))),
            }
        }
        // A session keeps records that its socket did not take.
        if let Err(error) = ready!(socket.poll_flush(cx)) {
            return Poll::Ready(Err(self.fail(&error)));
        }
        buffers.put_back(std::mem::take(&mut self.unsent));
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    fn may_repeat(&self) -> bool {
        self.is_reused && self.sent == 0
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Ok(0)) };
        let read = ready!(socket.poll_read(cx, buffer));
        if let Err(error) = &read {
            self.fail(error);
        }
        Poll::Ready(read)
    }

    fn end(&mut self, may_stay: bool) {
        if let Some(socket) = self.socket.take().filter(|_| may_stay && self.is_kept) {
            self.pool.give(socket, self.is_streamed);
        }
    }

    fn parts(
        &mut self,
        slice: Option<&[u8]>,
        upstream: &str,
        buffers: &Buffers,
        mut take: impl FnMut(Part<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let joined;
        let (mut bytes, mut at, is_last) = (slice.unwrap_or_default(), 0, slice.is_none_or(<[u8]>::is_empty));
        let mut is_joined = false;
        if let State::Head { torn } = &mut self.state {
            if is_last {
                return Err(unanswered(upstream, self.failure.clone()));
            }
            if !torn.is_empty() {
                joined = [&std::mem::take(torn)[..], bytes].concat();
                (bytes, is_joined) = (&joined[..], true);
            }
            let Some(end) = self.heads(bytes, (buffers, upstream), &mut take)? else { return Ok(()) };
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
                    break Part::End { verbatim: verbatim.filter(|_| !is_joined) };
                }
                // Only the orderly end of the connection is the end of such a body.
                Ok(None) if is_last && slice.is_some() && matches!(body, Body::Close) => {
                    break Part::End { verbatim: None };
                }
                Ok(None) if !is_last => return Ok(()),
                Ok(None) | Err(_) => {
                    self.is_kept = false;
                    break Part::Cut;
                }
            }
        };
        self.state = State::Ended;
        take(end)
    }
}
