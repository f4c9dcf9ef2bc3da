//! The socket of a connection to an upstream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use connect::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::capacity::Permit;
use crate::holder::Holder;

/// A connected socket, and its place among all sockets. A task that finds it not ready is woken once it is.
pub(crate) struct UpstreamSocket {
    stream: Stream,
    place: Permit,
}

impl UpstreamSocket {
    /// A connected socket.
    pub(crate) fn new(stream: Stream, place: Permit) -> Self {
        Self { stream, place }
    }

    /// Takes the socket and its place.
    pub(crate) fn into_parts(self) -> (Stream, Permit) {
        (self.stream, self.place)
    }

    /// Charges it to the holder of its request, or to none while it is idle.
    pub(crate) fn charge(&mut self, holder: Option<Arc<Holder>>) {
        self.place.charge(holder);
    }

    /// Reads once.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Writes once.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// Sends what was written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Returns true if it can carry another request, by the state that its socket had at the runtime's last poll of all
    /// sockets; `asks_kernel`: by its present state.
    pub(super) fn is_usable(&mut self, asks_kernel: bool) -> bool {
        // Anything that can be read is the end of the connection, or bytes that belong to no response.
        let mut unawaited = Context::from_waker(Waker::noop());
        self.poll_read(&mut unawaited, &mut [0]).is_pending() && (!asks_kernel || self.stream.is_alive())
    }
}
