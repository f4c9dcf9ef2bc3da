//! A client's connection as a byte stream, for a tunnel, or for a library.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client::Client;
use super::socket::Output;

/// A client's connection as a byte stream.
pub(crate) struct ClientStream {
    client: Rc<Client>,
    /// Bytes that may still be read in this turn, if they are bounded.
    turn_bytes: Option<Rc<Cell<usize>>>,
}

impl ClientStream {
    /// The bytes that a client sends from now on.
    pub(crate) fn new(client: &Rc<Client>) -> Self {
        Self { client: Rc::clone(client), turn_bytes: None }
    }

    /// All bytes that were not taken. `turn_bytes`: those that may still be read in a turn; then other connections have
    /// theirs.
    pub(crate) fn bounded(client: &Rc<Client>, turn_bytes: &Rc<Cell<usize>>) -> Self {
        Self { client: Rc::clone(client), turn_bytes: Some(Rc::clone(turn_bytes)) }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { client, turn_bytes } = self.get_mut();
        if let Some(first) = client.take_first(into.remaining()) {
            into.put_slice(&first);
            return Poll::Ready(Ok(()));
        }
        let left = turn_bytes.as_ref().map_or(usize::MAX, |left| left.get());
        if left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = into.remaining().min(left);
        let read = ready!(client.poll_read(cx, into.initialize_unfilled_to(most)))?;
        into.advance(read);
        if let Some(turn_bytes) = turn_bytes {
            turn_bytes.set(left - read);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, Output::Slice(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.client.poll_write(cx, Output::Slices(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_shutdown(cx)
    }
}
