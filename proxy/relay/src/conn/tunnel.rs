//! A connection that switched protocols (101): bytes are copied both ways, until both sides are closed. A session reads
//! them before they are written.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use connect::Stream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

use crate::capacity::Permit;
use crate::limits;
use crate::session::Session;

/// The upstream's side of a tunnel.
pub(crate) struct UpstreamIo {
    pub(crate) stream: Stream,
    /// The bytes read after the upstream's 101.
    pub(crate) first: Bytes,
    /// Its places among the upstream's connections and among all sockets.
    pub(crate) places: (Permit, Permit),
    /// The session that reads the bytes of both sides, if it is metered.
    pub(crate) session: Option<Box<Session>>,
}

/// Copies bytes until each side has closed its half, or one of them fails, or the session ends the connection. `left`
/// ends once the client has left; it matters while the upstream takes no bytes, because the client is not read then.
pub(crate) async fn run(
    (mut client, left): (impl AsyncRead + AsyncWrite + Unpin, impl Future<Output = ()>),
    upstream_io: UpstreamIo,
) {
    let UpstreamIo { stream: mut upstream, first: received, places: _places, session } = upstream_io;
    let mut session = ContainedSession(session);
    let received = session.with(|session| session.received(&received)).flatten().unwrap_or(received);
    let (mut up, mut down) = (Direction::new(Bytes::new()), Direction::new(received));
    let mut left = pin!(left);
    let mut deserted: Option<Pin<Box<Sleep>>> = None;
    let end = poll_fn(|cx| {
        let sent = up.poll_copy(cx, &mut client, &mut upstream, |bytes| {
            session.with(|session| session.sent(bytes)).flatten()
        });
        let received = down.poll_copy(cx, &mut upstream, &mut client, |bytes| {
            session.with(|session| session.received(bytes)).flatten()
        });
        if up.is_blocked() && left.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        let is_upstream_first = down.end != End::Open && up.end == End::Open;
        if down.end == End::Closed && session.0.is_some() {
            // A WebSocket cannot be half closed: the upstream reads nothing that the client still sends.
            let limit = || Box::pin(tokio::time::sleep(limits::CLIENT_CLOSE));
            if deserted.get_or_insert_with(limit).as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
        }
        match (sent, received) {
            (Poll::Ready(Err(Fault::Sender)), _) | (_, Poll::Ready(Err(Fault::Receiver))) => {
                Poll::Ready(None)
            }
            (Poll::Ready(Err(Fault::Receiver)), _) | (_, Poll::Ready(Err(Fault::Sender))) => {
                // A client that has closed its half may be the reason.
                if up.end == End::Open {
                    session.with(Session::upstream_closed);
                }
                Poll::Ready(None)
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(None),
            _ => {
                if is_upstream_first {
                    session.with(Session::upstream_closed);
                }
                let close = session.with(|session| session.close(cx)).flatten();
                close.map_or(Poll::Pending, |close| Poll::Ready(Some(close)))
            }
        }
    })
    .await;
    if let Some(close) = end {
        // A side that does not answer in time is cut off.
        let _ = tokio::time::timeout(limits::LINGER, async {
            tokio::join!(up.close(&mut upstream, close.to_upstream), async {
                down.close(&mut client, close.to_client).await?;
                client.shutdown().await
            },)
        })
        .await;
        let _ = tokio::time::timeout(limits::LINGER, async {
            tokio::join!(discard(&mut client), discard(&mut upstream))
        })
        .await;
    }
}

/// Reads until the sender closes its half.
async fn discard(from: &mut (impl AsyncRead + Unpin)) {
    // The connection ends with this, whatever the result.
    let _ = tokio::io::copy(from, &mut tokio::io::sink()).await;
}

/// A session that may fail without an effect on traffic (law 3).
struct ContainedSession(Option<Box<Session>>);

impl ContainedSession {
    /// Calls the session. A panic ends it, and is counted.
    fn with<R>(&mut self, show: impl FnOnce(&mut Session) -> R) -> Option<R> {
        let session = self.0.as_mut()?;
        let shown = catch_unwind(AssertUnwindSafe(|| show(session)));
        if shown.is_err() {
            session.panicked();
            self.0 = None;
        }
        shown.ok()
    }
}

/// One direction of a tunnel: its buffer, and its progress.
struct Direction {
    /// Bytes that are written before those of the buffer.
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

/// The side that failed in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Sender,
    Receiver,
}

impl Direction {
    fn new(first: Bytes) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self { first, buffer, unwritten: (0, 0), is_unflushed: false, end: End::Open }
    }

    /// Returns true if the receiver takes no bytes.
    fn is_blocked(&self) -> bool {
        !self.first.is_empty() || self.unwritten.0 < self.unwritten.1
    }

    /// Copies as far as possible; ready once the receiver's half is closed. `show` returns the bytes to write in place
    /// of those that were read, unless they are the same.
    fn poll_copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        mut show: impl FnMut(&[u8]) -> Option<Bytes>,
    ) -> Poll<Result<(), Fault>> {
        loop {
            ready!(self.poll_write(cx, to))?;
            match self.end {
                End::Open => {}
                End::Read => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx)).map_err(|_| Fault::Receiver)?;
                    self.end = End::Closed;
                    return Poll::Ready(Ok(()));
                }
                End::Closed => return Poll::Ready(Ok(())),
            }
            let mut into = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut *from).poll_read(cx, &mut into) {
                Poll::Ready(read) => read.map_err(|_| Fault::Sender)?,
                Poll::Pending => {
                    // A stream with TLS may hold written bytes. They are flushed before the wait, not after each write.
                    if self.is_unflushed {
                        ready!(Pin::new(&mut *to).poll_flush(cx)).map_err(|_| Fault::Receiver)?;
                        self.is_unflushed = false;
                    }
                    return Poll::Pending;
                }
            }
            let read = into.filled();
            if read.is_empty() {
                self.end = End::Read;
            }
            match show(read) {
                Some(instead) => self.first = instead,
                None => self.unwritten = (0, read.len()),
            }
        }
    }

    /// Writes what was read.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<Result<(), Fault>> {
        loop {
            let (from, until) = self.unwritten;
            let bytes = if self.first.is_empty() { &self.buffer[from..until] } else { &self.first[..] };
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let written = match ready!(Pin::new(&mut *to).poll_write(cx, bytes)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(Fault::Receiver)),
                Ok(written) => written,
            };
            self.is_unflushed = true;
            match self.first.is_empty() {
                true => self.unwritten.0 += written,
                false => self.first.advance(written),
            }
            if self.first.is_empty() {
                // Its memory is free.
                self.first = Bytes::new();
            }
        }
    }

    /// Writes what was read, and then `last`.
    async fn close(&mut self, to: &mut (impl AsyncWrite + Unpin), last: Bytes) -> std::io::Result<()> {
        let written = poll_fn(|cx| self.poll_write(cx, to)).await;
        written.map_err(|_fault| std::io::ErrorKind::BrokenPipe)?;
        to.write_all(&last).await?;
        to.flush().await
    }
}

/// The buffer of each direction, bytes; tunnels carry audio and events, not downloads.
const BUFFER_BYTES: usize = 8 * 1024;
