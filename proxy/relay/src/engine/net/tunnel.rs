//! A connection that switched protocols (101): bytes are copied both ways, unread, until both sides are closed.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::capacity::Permit;

/// The upstream's side of a tunnel.
pub(crate) struct UpstreamIo<S> {
    pub(crate) stream: S,
    /// The bytes read after the upstream's 101.
    pub(crate) first: Bytes,
    /// Its places among the upstream's connections and among all sockets.
    pub(crate) _places: (Option<Permit>, Permit),
}

/// Copies bytes until each side has closed its half, or one of them fails. `first`: the bytes that were read from the
/// client after its request.
pub(crate) async fn run<C, U>(mut client: C, first: Bytes, mut far: UpstreamIo<U>) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let mut up = Direction::new(first);
    let mut down = Direction::new(std::mem::take(&mut far.first));
    poll_fn(|cx| {
        let sent = up.poll_copy(cx, &mut client, &mut far.stream)?;
        let received = down.poll_copy(cx, &mut far.stream, &mut client)?;
        ready!(sent);
        ready!(received);
        Poll::Ready(Ok(()))
    })
    .await
}

/// One direction of a tunnel: its buffer, and how far it is.
struct Direction {
    /// The bytes read before the tunnel began; sent first.
    first: Bytes,
    buffer: Box<[u8]>,
    /// The bytes of the buffer that are not written yet.
    unwritten: (usize, usize),
    /// Bytes were written and may be in a buffer of the stream.
    is_unflushed: bool,
    end: End,
}

/// The end of one direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// More may come.
    Open,
    /// The sender has closed its half.
    Read,
    /// The receiver's half is closed, too.
    Closed,
}

impl Direction {
    fn new(first: Bytes) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { first, buffer, unwritten: (0, 0), is_unflushed: false, end: End::Open }
    }

    /// Copies as far as possible; ready once the receiver's half is closed.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.first.is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(cx, &self.first))?;
                self.wrote(written)?;
                self.first.advance(written);
            }
            while self.unwritten.0 < self.unwritten.1 {
                let bytes = &self.buffer[self.unwritten.0..self.unwritten.1];
                let written = ready!(Pin::new(&mut *to).poll_write(cx, bytes))?;
                self.wrote(written)?;
                self.unwritten.0 += written;
            }
            match self.end {
                End::Open => {}
                End::Read => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                    self.end = End::Closed;
                }
                End::Closed => return Poll::Ready(Ok(())),
            }
            if self.end == End::Open {
                let mut into = ReadBuf::new(&mut self.buffer);
                match Pin::new(&mut *from).poll_read(cx, &mut into) {
                    Poll::Ready(read) => read?,
                    Poll::Pending => {
                        if self.is_unflushed {
                            ready!(Pin::new(&mut *to).poll_flush(cx))?;
                            self.is_unflushed = false;
                        }
                        return Poll::Pending;
                    }
                }
                self.unwritten = (0, into.filled().len());
                if self.unwritten.1 == 0 {
                    self.end = End::Read;
                }
            }
        }
    }

    fn wrote(&mut self, written: usize) -> io::Result<()> {
        self.is_unflushed = true;
        if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }
}

/// The buffer of each direction, bytes; tunnels carry audio and events, not downloads.
const BUFFER_BYTES: usize = 8 * 1024;
