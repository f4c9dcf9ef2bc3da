//! A stream of a client's HTTP/2 connection, for one request and its response. Hyper's server reads and writes the
//! connection: it gives the body of the request in frames, and takes that of the response in pieces.

use std::error::Error as _;
use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Response, Version};
use hyper::body::Incoming;

use super::frames::Frames;
use crate::limits;
use crate::request::headers;
use crate::request::reject::Stop;
use crate::wire::failure::{BodyError, SendFailure};
use crate::wire::writer::Writer;
use crate::wire::{Buffers, Down, Framing, Head, Part, Received, Take, Wire};

/// A stream with a request of which the head was read.
pub(super) struct Http2Down {
    body: Frames<Incoming>,
    /// Its end, once that was received.
    last: Option<Result<HeaderMap, BodyError>>,
    /// The head of the response, until it is taken.
    head: Option<Response<()>>,
    writer: Writer,
    /// The part of the response that its connection has not taken.
    data: Bytes,
}

impl Http2Down {
    /// A stream of which nothing of the body was read.
    pub(super) fn new(body: Incoming) -> Self {
        let writer = Writer::of_frames();
        Self { body: Frames::new(body), last: None, head: None, writer, data: Bytes::new() }
    }

    /// Takes the head of the response.
    pub(super) fn take_head(&mut self) -> Option<Response<()>> {
        self.head.take()
    }

    /// Takes the next piece of the response. The library accepts one whole, however small the client's window is, so that
    /// the client's speed shows only between the pieces.
    pub(super) fn take_piece(&mut self) -> Option<Bytes> {
        if self.data.is_empty() {
            self.data = self.writer.take_payload().into();
        }
        let data = &mut self.data;
        (!data.is_empty()).then(|| data.split_to(data.len().min(limits::H2_PIECE_BYTES)))
    }

    /// The trailers of the response, if it has some.
    pub(super) fn trailers(&self) -> Option<HeaderMap> {
        self.writer.last().filter(|trailers| !trailers.is_empty()).cloned()
    }

    /// Returns true if all of the response was taken.
    pub(super) fn is_over(&self) -> bool {
        !self.has_data() && self.writer.last().is_some_and(HeaderMap::is_empty)
    }

    /// Returns true if some of it waits to be taken.
    pub(super) fn has_data(&self) -> bool {
        !(self.data.is_empty() && self.writer.is_empty())
    }
}

impl Wire for Http2Down {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let (read, last) = ready!(self.body.poll_slice(cx, buffer, false));
        self.last = last.map(|last| last.map_err(|error| unread(&error)));
        Poll::Ready(Ok(read))
    }

    fn parts(
        &mut self,
        received: Received<'_>,
        _: &Buffers,
        mut take: impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<(), Stop> {
        let data = received.slice();
        if !data.is_empty() {
            take(Part::Data { data, verbatim: None })?;
        }
        let last = match self.last.take() {
            None => return Ok(()),
            Some(Ok(trailers)) => Part::End { trailers, verbatim: None },
            Some(Err(error)) => Part::Cut(SendFailure::Body(error)),
        };
        take(last).map(drop)
    }

    fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    fn write(&mut self, _: &mut Context<'_>, _: &[u8], _: &Buffers) -> io::Result<()> {
        Ok(())
    }

    /// Nothing wakes the task: hyper polls it again once the client's window is open.
    fn poll_flush(&mut self, _: &mut Context<'_>, _: &Buffers) -> Poll<io::Result<()>> {
        if self.head.is_none() && !self.has_data() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Down for Http2Down {
    fn version(&self) -> Version {
        Version::HTTP_2
    }

    fn framing(&self) -> Framing {
        Framing::Length
    }

    fn response(&mut self, head: &Head<'_>, is_edited: bool, _: bool) {
        let mut fields = headers::for_client(head.fields.clone(), false);
        if fields.contains_key(TRANSFER_ENCODING) || is_edited {
            headers::take_out(&mut fields, &CONTENT_LENGTH);
            headers::take_out(&mut fields, &TRANSFER_ENCODING);
        }
        let mut response = Response::new(());
        *response.status_mut() = head.status;
        *response.headers_mut() = fields;
        self.head = Some(response);
    }

    /// A stream whose client leaves is dropped.
    fn poll_gone(&mut self, _: &mut Context<'_>, _: &Buffers) -> Poll<()> {
        Poll::Pending
    }
}

/// The reason why a body cannot be read.
fn unread(error: &hyper::Error) -> BodyError {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => BodyError::Malformed,
        _ => BodyError::ClientGone,
    }
}
