//! A connection to a client by HTTP/1.1, for one request and its response.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderName, StatusCode};
use http1::{Body, Version};
use tokio::task::coop;

use super::fields;
use crate::conn::client::Client;
use crate::conn::socket::Output;
use crate::limits;
use crate::request::headers;
use crate::request::reject::Stop;
use crate::wire::failure::{BodyError, SendFailure};
use crate::wire::writer::Writer;
use crate::wire::{Buffers, Down, Framing, Head, Part, Received, Take, Wire};

/// The answer to `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The properties of a request that decide the form of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) version: Version,
    /// True if the method is `HEAD`: the response has no body.
    pub(super) is_head: bool,
    /// True if the connection ends with the response.
    pub(super) is_last: bool,
    /// True if the client accepts trailers.
    pub(super) takes_trailers: bool,
    /// True while the client may wait for a `100 Continue` before it sends its body.
    pub(super) awaits_continue: bool,
}

/// A connection with a request whose head was read.
pub(crate) struct Http1Down {
    /// The rest of the request's body.
    body: Body,
    // Each frame uses the fields from here on.
    client: Rc<Client>,
    /// The properties of the request. Once a response has begun, `is_last` says if the connection ends with it.
    pub(super) asked: Asked,
    writer: Writer,
    /// True once an event of the client's socket wakes the task.
    is_watching: bool,
    /// True if a client that closes its sending side gets its response.
    half_close: bool,
    /// Ready once the client has left; set when its socket is no longer read.
    gone: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Asked {
    /// Those of a message that is not a request.
    pub(super) const NOTHING: Self = Self {
        version: Version::Http11,
        is_head: false,
        is_last: true,
        takes_trailers: false,
        awaits_continue: false,
    };
}

impl Http1Down {
    /// The connection of a client, to which nothing of the response was written. `half_close`: it may close its half.
    pub(super) fn new(client: Rc<Client>, asked: Asked, body: Body, half_close: bool) -> Self {
        Self { client, asked, body, writer: Writer::default(), is_watching: false, half_close, gone: None }
    }

    /// Returns true if a read that finds nothing registers the task at the socket. Tokio does so only within its budget, and
    /// a read with TLS may wait for other reasons.
    fn registers(&self) -> bool {
        !self.client.is_tls() && coop::has_budget_remaining()
    }
}

impl Wire for Http1Down {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Some(first) = self.client.take_first(buffer.len()) {
            buffer[..first.len()].copy_from_slice(&first);
            return Poll::Ready(Ok(first.len()));
        }
        let registers = self.registers();
        let polled = self.client.poll_read(cx, buffer);
        // A read takes the event that would have woken the task.
        self.is_watching = registers && polled.is_pending();
        if polled.is_pending() && std::mem::take(&mut self.asked.awaits_continue) {
            self.client.interim(CONTINUE);
            let _flushed = self.client.poll_flush(cx)?;
        }
        polled
    }

    fn parts(
        &mut self,
        received: Received<'_>,
        _: &Buffers,
        mut take: impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<(), Stop> {
        self.asked.awaits_continue = false;
        let malformed = || Part::Cut(SendFailure::Body(BodyError::Malformed));
        let Received::Slice(slice) = received else {
            return take(Part::Cut(SendFailure::Body(BodyError::ClientGone))).map(drop);
        };
        let mut at = 0;
        let last = loop {
            match self.body.next(slice, &mut at) {
                Ok(Some(http1::Part::Data { data, verbatim })) => {
                    take(Part::Data { data: &slice[data], verbatim })?;
                }
                Ok(Some(http1::Part::End { verbatim, end })) => {
                    if end < slice.len() {
                        // The next request.
                        self.client.return_first(Bytes::copy_from_slice(&slice[end..]));
                    }
                    let trailers = fields::trailers(self.body.trailers());
                    break trailers.map_or_else(malformed, |trailers| Part::End { trailers, verbatim });
                }
                Ok(None) => return Ok(()),
                Err(_) => break malformed(),
            }
        };
        take(last).map(drop)
    }

    fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    fn write(&mut self, cx: &mut Context<'_>, slice: &[u8], buffers: &Buffers) -> io::Result<()> {
        let Self { client, writer, .. } = self;
        writer.write(slice, buffers, |bytes| client.poll_write(cx, Output::Slice(bytes)))?;
        if writer.is_empty() {
            // There may be interim responses, even without other bytes.
            let _flushed = client.poll_flush(cx)?;
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<io::Result<()>> {
        let Self { client, writer, .. } = self;
        ready!(writer.poll_flush(buffers, |bytes| client.poll_write(cx, Output::Slice(bytes))))?;
        // A session keeps records that its socket did not take.
        client.poll_flush(cx)
    }
}

impl Down for Http1Down {
    fn version(&self) -> http::Version {
        match self.asked.version {
            Version::Http10 => http::Version::HTTP_10,
            Version::Http11 => http::Version::HTTP_11,
        }
    }

    fn framing(&self) -> Framing {
        match self.body {
            Body::Chunked(_) => Framing::Chunked,
            Body::Length(_) | Body::Close => Framing::Length,
        }
    }

    fn response(&mut self, head: &Head<'_>, is_edited: bool, is_last: bool) {
        let asked = &mut self.asked;
        asked.awaits_continue = false;
        let is_old = asked.version == Version::Http10;
        let is_switch = head.status == StatusCode::SWITCHING_PROTOCOLS;
        let is_empty = asked.is_head
            || is_switch
            || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let has_length = is_empty || head.framing == Framing::Length && !is_edited;
        let is_chunked = !has_length && !is_old;
        asked.is_last |= is_last || !has_length && is_old;
        let is_same = is_chunked == (head.framing == Framing::Chunked);
        let trailers = (is_chunked && asked.takes_trailers).then_some(head.fields);
        let out = self.writer.head(is_chunked, is_same, trailers);
        out.extend_from_slice(if is_old { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
        out.extend_from_slice(head.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(head.reason.as_bytes());
        out.extend_from_slice(b"\r\n");
        let is_coded = head.fields.contains_key(TRANSFER_ENCODING);
        let has_named = head.fields.contains_key(CONNECTION);
        let is_named = |name: &HeaderName| {
            has_named && !headers::is_framing(name) && headers::lists(head.fields, &CONNECTION, name.as_str())
        };
        let keeps = |name: &HeaderName| match *name {
            CONTENT_LENGTH => has_length && !is_coded && head.status != StatusCode::NO_CONTENT,
            TRANSFER_ENCODING => is_chunked && is_same,
            ref name => !(http1::is_hop_by_hop(name.as_str()) || is_named(name)),
        };
        if is_switch {
            // The upgrade is repeated on this hop.
            let fields = headers::for_client(head.fields.clone(), true);
            let is_framing = |name: &HeaderName| matches!(*name, CONTENT_LENGTH | TRANSFER_ENCODING);
            fields::write(out, &fields, head.lines.names(), |name| !is_framing(name));
        } else {
            fields::write(out, head.fields, head.lines.names(), keeps);
        }
        if is_chunked && !is_same {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        match (asked.is_last, is_old) {
            _ if is_switch => {}
            (true, false) => out.extend_from_slice(b"connection: close\r\n"),
            (false, true) => out.extend_from_slice(b"connection: keep-alive\r\n"),
            (true, true) | (false, false) => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<()> {
        if let Some(gone) = &mut self.gone {
            return gone.as_mut().poll(cx);
        }
        if self.is_watching && self.client.is_quiet() {
            return Poll::Pending;
        }
        let mut buffer = buffers.read.borrow_mut();
        while self.client.first_len() < limits::BUFFER_BYTES {
            let registers = self.registers();
            match self.client.poll_read(cx, &mut buffer) {
                Poll::Pending => {
                    self.is_watching = registers;
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) if self.half_close => break,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                // These are further requests.
                Poll::Ready(Ok(read)) => self.client.add_first(&buffer[..read]),
            }
        }
        let (client, half_close) = (Rc::clone(&self.client), self.half_close);
        // Boxed: few clients send so much ahead, or close their half.
        let gone = self.gone.insert(Box::pin(async move { client.gone(half_close).await }));
        gone.as_mut().poll(cx)
    }
}
