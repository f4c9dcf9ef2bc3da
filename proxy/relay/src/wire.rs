//! The interface between a request and its two connections, for all protocols. Both are read and written by the same
//! calls ([`Wire`]): a connection to a client ([`Down`]) receives the request and sends the response, one to an upstream
//! ([`Up`]) the reverse. No call waits: it goes as far as it can, and the task is woken when it can go on.
//!
//! Each protocol has these duties:
//! - It returns each slice of a body once, in order, in the turn in which it was read (law 2). A request body with invalid
//!   framing fails with [`Malformed`](failure::BodyError::Malformed), one whose client left with
//!   [`ClientGone`](failure::BodyError::ClientGone).
//! - The drop of a connection to an upstream closes its socket or resets its stream (law 4). If the client leaves before
//!   the end of its response, the owner of the pump drops it.
//! - A truncated body is truncated for its receiver, too: it has no last chunk, or its stream is reset.
//! - In each direction it buffers at most [`limits::BUFFER_BYTES`](crate::limits::BUFFER_BYTES): a slow client stops its
//!   upstream, or only its own stream of a shared connection.

pub(crate) mod failure;
pub(crate) mod h1;
pub(crate) mod h2;
pub(crate) mod serve;
pub(crate) mod upstream;
pub(crate) mod writer;

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use connect::TlsFault;
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use http1::Lines;

use self::failure::SendFailure;
use self::writer::Writer;
use crate::capacity::Permit;
use crate::request::reject::Stop;

/// Bytes of the buffer for reads.
pub(crate) const READ_BYTES: usize = 32 * 1024;

/// Bytes of the memory that short heads share.
const KEPT_BYTES: usize = 4 * 1024;

/// The result of one read.
pub(crate) enum Received<'r> {
    /// Bytes. Without any, only a head that was not taken is passed again.
    Slice(&'r [u8]),
    /// The orderly end of the connection.
    End,
    /// The connection failed.
    Failed(SendFailure),
}

impl<'r> Received<'r> {
    /// The result of a read into `buffer`.
    pub(crate) fn of(read: io::Result<usize>, buffer: &'r [u8]) -> Self {
        match read {
            Ok(0) => Self::End,
            Ok(read) => Self::Slice(&buffer[..read]),
            Err(error) => Self::Failed(TlsFault::of_io(&error).map_or(SendFailure::Closed, SendFailure::Tls)),
        }
    }

    /// The bytes; empty at the end.
    pub(crate) fn slice(&self) -> &'r [u8] {
        match self {
            Self::Slice(slice) => slice,
            Self::End | Self::Failed(_) => &[],
        }
    }
}

/// A part of a message.
pub(crate) enum Part<'r> {
    /// An interim response (1xx).
    Interim(&'r Head<'r>),
    /// The head of a response. That of a request is known before its connection is used.
    Head(&'r Head<'r>),
    Data {
        /// Payload, never empty.
        data: &'r [u8],
        /// The range of the received slice that may be forwarded unchanged to a peer with the same framing, such as a
        /// chunk with its line.
        verbatim: Option<Range<usize>>,
    },
    /// The end of the body.
    End {
        trailers: HeaderMap,
        /// The range of the received slice that may be forwarded unchanged.
        verbatim: Option<Range<usize>>,
    },
    /// The message is truncated; before a head, there is no message.
    Cut(SendFailure),
}

/// The reply of the receiver of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    Taken,
    /// The part is a head, and is passed again with the next bytes. Only for a head without [`Head::beginning`], or one that
    /// another attempt may replace.
    Later,
}

/// The head of a response.
pub(crate) struct Head<'r> {
    pub(crate) status: StatusCode,
    /// The reason phrase.
    pub(crate) reason: &'r str,
    pub(crate) fields: &'r HeaderMap,
    /// The fields as received, with the spelling of their names; none with HTTP/2.
    pub(crate) lines: Lines<'r, 'r>,
    pub(crate) framing: Framing,
    /// The first bytes of the body; empty if it has none, and `None` if they have not arrived yet.
    pub(crate) beginning: Option<&'r [u8]>,
}

/// The framing of a body: the mark of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Its length is stated, or it is empty.
    Length,
    Chunked,
    /// The end of its connection.
    Close,
}

/// The memory that all connections of a worker share. A buffer is borrowed within one poll only, or taken and put back.
pub(crate) struct Buffers {
    /// Receives the bytes of any socket.
    pub(crate) read: RefCell<Box<[u8]>>,
    /// Bytes of messages that are encoded here.
    pub(crate) out: RefCell<Vec<u8>>,
    /// The fields of a head.
    pub(crate) fields: RefCell<HeaderMap>,
    /// Free memory for heads, and for bytes that were read behind them.
    kept: RefCell<BytesMut>,
}

impl Buffers {
    /// The buffers of one worker.
    pub(crate) fn new() -> Self {
        let read = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
        let kept = RefCell::new(BytesMut::with_capacity(KEPT_BYTES));
        Self { read, out: RefCell::default(), fields: RefCell::default(), kept }
    }

    /// Copies bytes to memory that they share with others, and that is free again once none of them is used. Most heads are
    /// used for one turn only.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Bytes {
        let mut kept = self.kept.borrow_mut();
        kept.extend_from_slice(bytes);
        kept.split().freeze()
    }

    /// Keeps memory that was taken from `out`, or is larger, for the next message.
    pub(crate) fn put_back(&self, mut memory: Vec<u8>) {
        let mut out = self.out.borrow_mut();
        if out.capacity() < memory.capacity() && memory.capacity() <= READ_BYTES {
            memory.clear();
            *out = memory;
        }
    }
}

/// A connection while it carries one request and its response.
pub(crate) trait Wire {
    /// Reads once; ready with 0 at the end of the connection.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Passes each part of the received bytes to `take`. The only errors are those of `take`.
    fn parts(
        &mut self,
        received: Received<'_>,
        buffers: &Buffers,
        take: impl FnMut(Part<'_>) -> Result<Take, Stop>,
    ) -> Result<(), Stop>;

    /// The message that is being sent.
    fn writer(&mut self) -> &mut Writer;

    /// Takes the worker's memory for the parts that are added before [`write`](Self::write), unless bytes are unsent.
    fn begin(&mut self, buffers: &Buffers) {
        self.writer().begin(buffers);
    }

    /// Adds payload. `verbatim`: the range of `slice`, which was received, that may be forwarded in its place.
    fn data(&mut self, slice: &[u8], data: &[u8], verbatim: Option<Range<usize>>) {
        self.writer().data(slice, data, verbatim);
    }

    /// Adds the end of the message.
    fn end(&mut self, slice: &[u8], verbatim: Option<Range<usize>>, trailers: &HeaderMap) {
        self.writer().end(slice, verbatim, trailers);
    }

    /// Writes the parts that were added, and keeps the bytes that the peer does not take. An error means that it left.
    fn write(&mut self, cx: &mut Context<'_>, slice: &[u8], buffers: &Buffers) -> io::Result<()>;

    /// Writes the bytes that were kept; ready once there are none.
    fn poll_flush(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<io::Result<()>>;
}

/// A connection to an upstream.
pub(crate) trait Up: Wire {
    /// Begins a request. `received`: the bytes of its head, which show the spelling of its field names, or none;
    /// `framing`: that of the received body.
    fn request(&mut self, parts: &Parts, received: &[u8], framing: Framing);

    /// Returns true if the request may be sent on another connection: this one carried others before, and nothing of this
    /// request was sent.
    fn may_repeat(&self) -> bool;

    /// Takes the place of its request at the upstream, for the next attempt.
    fn take_slot(&mut self) -> Option<Permit>;

    /// Ends the exchange. The connection is kept for another one if it `may_stay` and can carry another; else it is closed.
    fn release(&mut self, may_stay: bool);

    /// Takes back a request that failed, if the server has not processed it and all of its bytes are still here.
    fn take_back(&mut self, _: &SendFailure) -> Option<Unanswered> {
        None
    }
}

/// A request that the server has not processed.
pub(crate) struct Unanswered {
    pub(crate) parts: Parts,
    /// The bytes of its head, as received; none with HTTP/2.
    pub(crate) received: Bytes,
    pub(crate) framing: Framing,
    /// The part of its body that was sent.
    pub(crate) slices: Vec<Bytes>,
    /// True if its connection may have carried a request before.
    pub(crate) is_reused: bool,
}

/// A connection to a client.
pub(crate) trait Down: Wire {
    /// The version of HTTP that the client uses.
    fn version(&self) -> Version;

    /// The framing of the request's body.
    fn framing(&self) -> Framing;

    /// Begins a response. `is_edited`: its length may change; `is_last`: the connection ends with it.
    fn response(&mut self, head: &Head<'_>, is_edited: bool, is_last: bool);

    /// Watches the client while nothing is read; ready once it has left.
    fn poll_gone(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_bytes_use_the_same_memory_again() {
        let buffers = Buffers::new();
        let places: Vec<usize> = (0..=u8::MAX)
            .map(|byte| {
                let kept = buffers.keep(&[byte; 300]);
                assert_eq!(kept, vec![byte; 300]);
                kept.as_ptr().addr()
            })
            .collect();
        let (first, last) = (places.iter().min().unwrap(), places.iter().max().unwrap());
        assert!(last - first < KEPT_BYTES);
    }
}
