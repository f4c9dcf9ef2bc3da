//! A connection to an upstream over HTTP/2, which carries many requests at once. It uses the crate h2, as hyper does:
//! hyper's own client neither returns requests that the server has not processed, nor reports interim responses.
//!
//! A task drives the connection: it reads frames into the buffers of their streams, and writes what the streams queue.
//! The bodies' tasks run in the same turn of the worker. The connection closes once neither the pool nor a stream uses
//! it.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use connect::{Stream, TlsFault};
use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::waiting::Place;
use crate::capacity::Permit;
use crate::contained::Contained;
use crate::limits;
use crate::state::WorkerState;

/// A connection that new requests may use. Its drop lets the streams finish and then closes the connection.
pub(crate) struct Http2Connection(Rc<Link>);

impl Http2Connection {
    /// Starts HTTP/2 on a stream, in a task of the worker. `place`: its place among all sockets.
    pub(crate) async fn start(worker: &Rc<WorkerState>, stream: Stream, place: Permit) -> io::Result<Self> {
        let traffic = Rc::<Traffic>::default();
        let io = BoundedIo { stream, traffic: Rc::clone(&traffic) };
        let (sender, mut connection) = builder().handshake(io).await.map_err(io::Error::other)?;
        let pings = connection.ping_pong().expect("it is taken once");
        let unused = Rc::<Notify>::default();
        let (driven, noticed) = (Rc::clone(&traffic), Rc::clone(&unused));
        let driving = async move {
            let driving = std::future::poll_fn(|cx| {
                driven.turn_bytes.set(limits::H2_TURN_BYTES);
                Pin::new(&mut connection).poll(cx).map(drop)
            });
            tokio::select! {
                biased;
                () = driving => {}
                () = silence(pings, &driven) => driven.is_silent.set(true),
                () = async {
                    noticed.notified().await;
                    tokio::time::sleep(limits::H2_CLOSE).await;
                } => {}
            }
            drop(place);
        };
        tokio::task::spawn_local(Contained::new(worker, driving));
        Ok(Self(Rc::new(Link { sender, traffic, unused })))
    }
}

/// The settings of all connections.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(limits::H2_UPSTREAM_STREAMS)
        .initial_window_size(limits::H2_UPSTREAM_STREAM_WINDOW)
        .initial_connection_window_size(limits::H2_UPSTREAM_CONNECTION_WINDOW)
        .max_header_list_size(limits::H2_RESPONSE_LIST_BYTES)
        .max_send_buffer_size(limits::BUFFER_BYTES)
        .data_frame_budget(limits::H2_SMALL_FRAMES_BYTES)
        .max_concurrent_reset_streams(limits::H2_RESETS_KEPT)
        .reset_stream_duration(limits::H2_RESET_KEPT)
        .max_local_error_reset_streams(Some(limits::H2_UPSTREAM_ERRORS));
    builder
}

impl Http2Connection {
    /// A place for one request.
    pub(crate) fn place(&self) -> Place {
        Place::new(&self.0)
    }

    /// Returns true while the server accepts further requests.
    pub(crate) fn is_open(&self) -> bool {
        // Pending would mean a queued request of this handle, which never sends one.
        let mut sender = self.0.sender.clone();
        !matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
    }

    /// The number of streams.
    pub(crate) fn streams(&self) -> usize {
        self.0.traffic.streams.get()
    }

    /// The number of streams that the server allows at once; `None` until it states one.
    pub(crate) fn streams_max(&self) -> Option<usize> {
        // The server's settings are its first frame.
        let is_known = self.0.traffic.has_read.get();
        is_known.then(|| self.0.sender.current_max_send_streams().min(limits::H2_UPSTREAM_STREAMS))
    }
}

/// The part of a connection that the pool and its streams share. Once none of them has it any more, it closes.
pub(super) struct Link {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) traffic: Rc<Traffic>,
    unused: Rc<Notify>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.unused.notify_one();
    }
}

/// The state of a connection that its task and its streams share.
#[derive(Default)]
pub(super) struct Traffic {
    /// Requests in progress.
    pub(super) streams: Cell<usize>,
    /// True once the server sent something.
    has_read: Cell<bool>,
    /// True if the server sent something since the last check.
    is_heard: Cell<bool>,
    /// Bytes that may still be read in this turn.
    turn_bytes: Cell<usize>,
    /// True once the server has not answered a PING.
    pub(super) is_silent: Cell<bool>,
    /// The fault of TLS that ended the connection.
    pub(super) tls_fault: RefCell<Option<TlsFault>>,
}

/// Ends when a server with open requests answers no PING.
async fn silence(mut pings: PingPong, traffic: &Traffic) {
    loop {
        tokio::time::sleep(limits::H2_PING_AFTER).await;
        if traffic.is_heard.replace(false) || traffic.streams.get() == 0 {
            continue;
        }
        let pong = tokio::time::timeout(limits::H2_PONG_WITHIN, pings.ping(Ping::opaque()));
        if !matches!(pong.await, Ok(Ok(_))) {
            return;
        }
    }
}

/// A byte stream whose reads are counted, and bounded in each turn: a server that sends without pause leaves time for the
/// tasks of its streams.
struct BoundedIo {
    stream: Stream,
    traffic: Rc<Traffic>,
}

impl AsyncRead for BoundedIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, traffic } = self.get_mut();
        let left = traffic.turn_bytes.get();
        if left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(stream).poll_read(cx, buffer);
        match &polled {
            Poll::Ready(Ok(())) => {
                traffic.turn_bytes.set(left.saturating_sub(buffer.filled().len() - before));
                traffic.has_read.set(true);
                traffic.is_heard.set(true);
            }
            Poll::Ready(Err(error)) => {
                traffic.tls_fault.replace(TlsFault::of_io(error));
            }
            Poll::Pending => {}
        }
        polled
    }
}

impl AsyncWrite for BoundedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The time after which a server with this many requests counts as silent, of ten minutes.
    async fn silent_after(answers: bool, streams: usize) -> Option<Duration> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (sender, mut connection) = builder().handshake::<_, Bytes>(near).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        tokio::spawn(connection);
        let server = tokio::spawn(async move {
            if answers {
                let mut server = h2::server::handshake(far).await.unwrap();
                while server.accept().await.is_some() {}
            } else {
                let _open = far;
                std::future::pending::<()>().await;
            }
        });
        let traffic = Traffic::default();
        traffic.streams.set(streams);
        let begun = tokio::time::Instant::now();
        let silent = tokio::time::timeout(Duration::from_secs(600), silence(pings, &traffic)).await;
        server.abort();
        drop(sender);
        silent.is_ok().then(|| begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_silent_server_with_requests_is_given_up() {
        let limit = limits::H2_PING_AFTER + limits::H2_PONG_WITHIN;
        let after = silent_after(false, 1).await.unwrap();
        assert!(after >= limit && after < limit + Duration::from_secs(1), "{after:?}");
        assert_eq!(silent_after(true, 1).await, None);
        assert_eq!(silent_after(false, 0).await, None);
    }
}
