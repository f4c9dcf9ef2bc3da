//! The interface between a request and the two connections that carry it, whatever protocol each of them has. A
//! connection to an upstream gives the response in parts; one to a client takes them. Nothing waits: each call goes as
//! far as it can, and a task that cannot go on is woken.

pub(crate) mod h1;

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll};

use http::{HeaderMap, StatusCode};
use http1::Lines;

use crate::engine::SendFailure;
use crate::request::reject::Stop;

/// Bytes of one read.
pub(crate) const READ_BYTES: usize = 32 * 1024;

/// A part of a response.
pub(crate) enum Part<'r> {
    /// An interim response (1xx).
    Interim(&'r Head<'r>),
    Head(&'r Head<'r>),
    Data {
        /// Payload, never empty.
        data: &'r [u8],
        /// The range of the received slice that may be forwarded as it is to a peer with the same framing, such as a
        /// chunk with its line.
        verbatim: Option<Range<usize>>,
    },
    /// The end of the body, after its trailers.
    End {
        /// The range of the received slice that may be forwarded as it is.
        verbatim: Option<Range<usize>>,
    },
    /// The body is truncated.
    Cut,
}

/// The head of a response.
pub(crate) struct Head<'r> {
    pub(crate) status: StatusCode,
    /// The reason phrase.
    pub(crate) reason: &'r str,
    pub(crate) fields: &'r HeaderMap,
    /// The fields as they were received.
    pub(crate) lines: Lines<'r, 'r>,
    pub(crate) framing: Framing,
}

/// The way in which the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Its length is stated, or there is none.
    Length,
    Chunked,
    /// It ends with its connection.
    Close,
}

/// The memory that all connections of a worker share. Each is used within one poll only, or taken and put back.
pub(crate) struct Buffers {
    /// Receives the bytes of any socket.
    pub(crate) read: RefCell<Box<[u8]>>,
    /// Bytes that are made anew.
    pub(crate) out: RefCell<Vec<u8>>,
    /// The fields of a head.
    pub(crate) fields: RefCell<HeaderMap>,
}

impl Buffers {
    /// The buffers of one worker.
    pub(crate) fn new() -> Self {
        let read = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
        Self { read, out: RefCell::default(), fields: RefCell::default() }
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

/// A connection to an upstream that carries one request.
pub(crate) trait Up {
    /// Sends the request; ready once all of it was sent.
    fn poll_send(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<Result<(), SendFailure>>;

    /// Returns true if the request may be sent on another connection: this one carried others before, and nothing was sent.
    fn may_repeat(&self) -> bool;

    /// Reads once. Nothing is read at the end of the connection.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Gives each part of a slice to `take`; `None`: the connection failed. An error comes in place of a response: from
    /// `take`, or it names the `upstream`.
    fn parts(
        &mut self,
        slice: Option<&[u8]>,
        upstream: &str,
        buffers: &Buffers,
        take: impl FnMut(Part<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop>;

    /// Ends the request. The connection is kept for another one if it `may_stay` and can carry one; else it is closed.
    fn end(&mut self, may_stay: bool);
}

/// A connection to a client, for the response to one request.
pub(crate) trait Down {
    /// Takes the worker's memory for the parts until [`write`](Self::write). Nothing may be kept then.
    fn begin(&mut self, buffers: &Buffers);

    /// Begins a response. `is_edited`: its length may change; `is_last`: the connection ends with it.
    fn head(&mut self, head: &Head<'_>, is_edited: bool, is_last: bool);

    /// Adds payload. `verbatim`: the range of `slice`, which was received, that may be forwarded in its place.
    fn data(&mut self, slice: &[u8], data: &[u8], verbatim: Option<Range<usize>>);

    /// Adds the end of the response.
    fn end(&mut self, slice: &[u8], verbatim: Option<Range<usize>>);

    /// Writes what was added. What the client does not take is kept; an error means that it left.
    fn write(&mut self, cx: &mut Context<'_>, slice: &[u8], buffers: &Buffers) -> io::Result<()>;

    /// Writes what was kept; ready once there is nothing.
    fn poll_flush(&mut self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<io::Result<()>>;

    /// Watches the client; ready once it has left.
    fn poll_gone(&self, cx: &mut Context<'_>, buffers: &Buffers) -> Poll<()>;
}
