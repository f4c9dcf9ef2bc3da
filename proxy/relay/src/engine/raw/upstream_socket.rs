//! The socket of a connection to an upstream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use connect::{ConnectError, Offer, Stream, Target};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connected socket. A task that finds it not ready is woken once it is.
pub(super) struct UpstreamSocket(Stream);

impl UpstreamSocket {
    /// Connects within a time.
    pub(super) async fn connect(target: &Target, timeout: Duration) -> Result<Self, ConnectError> {
        target.connect(Offer::Http1, timeout).await.map(Self)
    }

    /// Reads once.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Writes once.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    /// Returns true if nothing is unread and the server has not closed it, as far as the runtime knows;
    /// `asks_kernel`: or the kernel.
    pub(super) fn is_open(&mut self, asks_kernel: bool) -> bool {
        let mut unawaited = Context::from_waker(Waker::noop());
        self.poll_read(&mut unawaited, &mut [0]).is_pending() && (!asks_kernel || self.0.is_alive())
    }
}
