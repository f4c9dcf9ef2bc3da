//! A message that is being written: the encoding of its parts, until its connection takes them.

use std::io;
use std::ops::Range;
use std::task::{Poll, ready};

use http::HeaderMap;
use http::header::{HeaderName, TRAILER};
use http1::{write_chunk, write_field};

use crate::limits;
use crate::request::headers;
use crate::wire::Buffers;

/// The parts of a message that were added and not yet written.
#[derive(Default)]
pub(crate) struct Writer {
    /// Encoded bytes, in the worker's memory, and after a write those that the socket did not take.
    out: Vec<u8>,
    /// The range of the received slice that follows them unchanged.
    run: Range<usize>,
    coding: Coding,
    /// True if the body has the framing with which it is received.
    is_same: bool,
    /// Boxed: few messages have some.
    trailers: Option<Box<Trailers>>,
}

/// The trailers of a message.
enum Trailers {
    /// The first names that the head announces: a trailer section has no more fields.
    Announced(Vec<HeaderName>),
    /// Those of a message in frames that has ended.
    Last(HeaderMap),
}

/// The coding of the body for its receiver.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    /// The payload alone.
    #[default]
    Plain,
    Chunks,
    /// The frames that a library makes of the payload.
    Frames,
}

impl Writer {
    /// A message in frames.
    pub(super) fn of_frames() -> Self {
        Self { coding: Coding::Frames, ..Self::default() }
    }

    /// The trailers of a message in frames, once it has ended.
    pub(super) fn last(&self) -> Option<&HeaderMap> {
        match self.trailers.as_deref() {
            Some(Trailers::Last(trailers)) => Some(trailers),
            Some(Trailers::Announced(_)) | None => None,
        }
    }

    /// Takes the payload of a message in frames.
    pub(super) fn take_payload(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes the worker's memory, unless there are bytes that the socket did not take, or a library takes the memory.
    pub(super) fn begin(&mut self, buffers: &Buffers) {
        if self.out.is_empty() && self.coding != Coding::Frames {
            self.out = buffers.out.take();
            self.out.clear();
        }
    }

    /// Begins a message. Returns the buffer to which its head is written. `is_same`: the body keeps the framing with which it
    /// is received; `trailers`: the fields of the head, if the receiver may get trailers.
    pub(super) fn head(
        &mut self,
        is_chunked: bool,
        is_same: bool,
        trailers: Option<&HeaderMap>,
    ) -> &mut Vec<u8> {
        self.coding = if is_chunked { Coding::Chunks } else { Coding::Plain };
        self.is_same = is_same;
        self.trailers = trailers.filter(|fields| fields.contains_key(TRAILER)).map(|fields| {
            let names =
                headers::tokens(fields, &TRAILER).filter_map(|name| HeaderName::from_bytes(name).ok());
            Box::new(Trailers::Announced(names.take(limits::HEAD_FIELDS).collect()))
        });
        &mut self.out
    }

    /// Adds payload.
    pub(super) fn data(&mut self, slice: &[u8], data: &[u8], verbatim: Option<Range<usize>>) {
        if let Some(range) = verbatim.filter(|_| self.is_same) {
            return self.extend(slice, range);
        }
        self.flush_run(slice);
        // Only whole chunks are forwarded unchanged, because one whose line was forwarded could not become shorter.
        match self.coding {
            Coding::Chunks => write_chunk(&mut self.out, data),
            Coding::Plain | Coding::Frames => self.out.extend_from_slice(data),
        }
    }

    /// Adds the end of the body.
    pub(super) fn end(&mut self, slice: &[u8], verbatim: Option<Range<usize>>, trailers: &HeaderMap) {
        if let Some(range) = verbatim.filter(|_| self.is_same) {
            return self.extend(slice, range);
        }
        match self.coding {
            Coding::Plain => return,
            Coding::Frames => return self.trailers = Some(Box::new(Trailers::Last(trailers.clone()))),
            Coding::Chunks => self.flush_run(slice),
        }
        let Self { out, trailers: kept, .. } = self;
        out.extend_from_slice(b"0\r\n");
        if let Some(Trailers::Announced(names)) = kept.as_deref() {
            for (name, value) in trailers.iter().filter(|(name, _)| names.contains(name)) {
                write_field(out, name.as_str(), value.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the added parts with `write`, and keeps the bytes that the socket does not take.
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

    /// Writes the kept bytes with `write`.
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

    /// True if no bytes wait.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Adds a range of the slice; usually it follows the one before.
    fn extend(&mut self, slice: &[u8], range: Range<usize>) {
        if self.run.end != range.start {
            self.flush_run(slice);
            self.run.start = range.start;
        }
        self.run.end = range.end;
    }

    /// Copies the range, because encoded bytes follow it.
    fn flush_run(&mut self, slice: &[u8]) {
        let run = std::mem::take(&mut self.run);
        self.out.extend_from_slice(&slice[run]);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn announced_trailers_take_little_memory() {
        let names = vec!["ab"; 20_000].join(",");
        let fields = HeaderMap::from_iter([(TRAILER, HeaderValue::from_str(&names).unwrap())]);
        let mut writer = Writer::default();
        writer.head(true, true, Some(&fields));
        let Some(Trailers::Announced(names)) = writer.trailers.as_deref() else {
            panic!("none is announced")
        };
        assert_eq!((names.len(), names.capacity() < 2 * limits::HEAD_FIELDS), (limits::HEAD_FIELDS, true));
    }
}
