//! A message that is being written to a socket by HTTP/1.1.

use std::io;
use std::ops::Range;
use std::task::{Poll, ready};

use http::HeaderMap;
use http::header::{HeaderName, TRAILER};
use http1::{write_chunk, write_field};

use crate::request::headers;
use crate::wire::Buffers;

/// The bytes of a message that were added and not yet written.
#[derive(Default)]
pub(super) struct Writer {
    /// Bytes that are made anew, in the worker's memory, and later those of them that the socket did not take.
    out: Vec<u8>,
    /// The range of the received slice that follows them unchanged.
    run: Range<usize>,
    /// True if the peer gets chunks.
    is_chunked: bool,
    /// True if the framing of the body is the one with which it is received.
    is_same: bool,
    /// The trailers that the head announced.
    announced: Option<Box<[HeaderName]>>,
}

impl Writer {
    /// Takes the worker's memory, unless there are bytes that the socket did not take.
    pub(super) fn begin(&mut self, buffers: &Buffers) {
        if self.out.is_empty() {
            self.out = buffers.out.take();
            self.out.clear();
        }
    }

    /// The bytes to which a head is written. `is_same`: the framing of the body is the one with which it is received;
    /// `trailers`: the fields of a head whose trailers the peer may get.
    pub(super) fn head(
        &mut self,
        is_chunked: bool,
        is_same: bool,
        trailers: Option<&HeaderMap>,
    ) -> &mut Vec<u8> {
        (self.is_chunked, self.is_same) = (is_chunked, is_same);
        self.announced = trailers.filter(|fields| fields.contains_key(TRAILER)).map(|fields| {
            let names = headers::tokens(fields, &TRAILER);
            names.filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
        });
        &mut self.out
    }

    /// Adds payload.
    pub(super) fn data(&mut self, slice: &[u8], data: &[u8], verbatim: Option<Range<usize>>) {
        if let Some(range) = verbatim.filter(|_| self.is_same) {
            return self.extend(slice, range);
        }
        self.flush_run(slice);
        // A chunk whose line was forwarded cannot become shorter: only whole chunks are forwarded unchanged.
        match self.is_chunked {
            true => write_chunk(&mut self.out, data),
            false => self.out.extend_from_slice(data),
        }
    }

    /// Adds the end of the body.
    pub(super) fn end(&mut self, slice: &[u8], verbatim: Option<Range<usize>>, trailers: &HeaderMap) {
        if let Some(range) = verbatim.filter(|_| self.is_same) {
            return self.extend(slice, range);
        }
        if !self.is_chunked {
            return;
        }
        self.flush_run(slice);
        let Self { out, announced, .. } = self;
        out.extend_from_slice(b"0\r\n");
        for (name, value) in trailers {
            if announced.iter().flatten().any(|known| known == name) {
                write_field(out, name.as_str(), value.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes what was added, by `write`, and keeps what the socket does not take.
    pub(super) fn write(
        &mut self,
        slice: &[u8],
        buffers: &Buffers,
        mut write: impl FnMut(&[u8]) -> Poll<io::Result<usize>>,
    ) -> io::Result<()> {
        let run = &slice[std::mem::take(&mut self.run)];
        let is_run = self.out.is_empty();
        let whole = if is_run {
            run
        } else {
            self.out.extend_from_slice(run);
            &self.out[..]
        };
        let written = match whole {
            [] => 0,
            whole => match write(whole) {
                Poll::Ready(written) => written?,
                Poll::Pending => 0,
            },
        };
        if is_run {
            self.out.extend_from_slice(&run[written..]);
        } else {
            self.out.drain(..written);
        }
        if self.out.is_empty() {
            buffers.put_back(std::mem::take(&mut self.out));
        }
        Ok(())
    }

    /// Writes what was kept, by `write`.
    pub(super) fn poll_flush(
        &mut self,
        buffers: &Buffers,
        mut write: impl FnMut(&[u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<()>> {
        if self.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.is_empty() {
            match ready!(write(&self.out))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(self.out.drain(..written)),
            }
        }
        buffers.put_back(std::mem::take(&mut self.out));
        Poll::Ready(Ok(()))
    }

    /// True if all was written.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Adds a range of the slice, which usually follows the one before.
    fn extend(&mut self, slice: &[u8], range: Range<usize>) {
        if self.run.end != range.start {
            self.flush_run(slice);
            self.run.start = range.start;
        }
        self.run.end = range.end;
    }

    /// Copies the range before what is made anew.
    fn flush_run(&mut self, slice: &[u8]) {
        let run = std::mem::take(&mut self.run);
        self.out.extend_from_slice(&slice[run]);
    }
}
