//! One connection to an upstream through hyper's client for HTTP/1.1. No task drives it: `drive` does, and dropping it
//! closes its socket.

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use connect::{Stream, TlsFault};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper::rt::ReadBufCursor;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite, Take};

use crate::engine::net::read_budget::{ReadBudget, Turn};
use crate::engine::{BodyError, SendError, SendFailure, UpstreamBody};

/// One connection to an upstream.
pub(crate) struct Http1Connection<B: UpstreamBody> {
    // Bodies are boxed to keep hyper's queue small: it allocates space for 32 requests.
    sender: http1::SendRequest<Box<B>>,
    /// `None` once the connection is unusable.
    protocol: Option<http1::Connection<Socket, Box<B>>>,
    socket: Socket,
    closed: bool,
}

impl<B: UpstreamBody> Http1Connection<B> {
    /// Starts HTTP/1.1 on a socket.
    pub(super) async fn new(builder: &http1::Builder, turn: &Turn, stream: Stream) -> io::Result<Self> {
        let socket = Socket::new(stream, turn);
        let (sender, protocol) = builder.handshake(socket.clone()).await.map_err(io::Error::other)?;
        Ok(Self { sender, protocol: Some(protocol), socket, closed: false })
    }

    /// Queues a request.
    pub(super) fn send(
        &mut self,
        request: Request<B>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendError<B>>> + use<B> {
        let sending = self.sender.try_send_request(request.map(Box::new));
        async move {
            let mut response = sending.await.map_err(failed)?;
            response.extensions_mut().remove::<OnUpgrade>();
            Ok(response)
        }
    }

    /// Reads and writes as far as possible.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.closed
            && let Some(protocol) = &mut self.protocol
            && protocol.poll_without_shutdown(cx).is_ready()
        {
            self.closed = true;
        }
    }

    /// Releases the connection if it is closed, and with it a queued request; false if it is not, or already released.
    pub(super) fn release(&mut self) -> bool {
        self.closed && self.protocol.take().is_some()
    }

    /// Returns true if another request may be sent.
    pub(super) fn is_reusable(&self) -> bool {
        !self.closed && self.sender.is_ready()
    }

    /// Returns true if the idle connection can still be used, by the runtime's state of its socket.
    pub(super) fn is_open(&mut self, cx: &mut Context<'_>) -> bool {
        // Only what the server sent, or its end, can have changed an idle connection.
        if self.socket.0.borrow_mut().stream().may_read(cx) {
            self.drive(cx);
        }
        self.is_reusable()
    }

    /// Returns true if the idle connection can still be used, also by the kernel's state of its socket.
    pub(super) fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.is_open(cx) && self.socket.0.borrow_mut().stream().is_alive()
    }

    /// Takes the stream after the upstream switched protocols, with the bytes read after the 101.
    pub(super) async fn into_socket(mut self) -> Option<(Stream, Bytes)> {
        std::future::poll_fn(|cx| {
            self.drive(cx);
            if self.closed { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let Self { sender, protocol, socket, .. } = self;
        drop(sender);
        let parts = protocol?.into_parts();
        drop(parts.io);
        let stream = Rc::into_inner(socket.0)?.into_inner().io.into_inner().into_inner();
        Some((stream, parts.read_buf))
    }
}

fn failed<B>(mut error: TrySendError<Request<Box<B>>>) -> SendError<B> {
    let unsent = error.take_message().map(|request| request.map(|body| *body));
    let error = error.error();
    let body = error.source().and_then(|cause| cause.downcast_ref::<BodyError>());
    let cause = match body {
        Some(body) => SendFailure::Body(body.clone()),
        None if error.is_parse_too_large() => SendFailure::HeadTooLarge,
        None if error.is_parse() => SendFailure::Invalid,
        None => tls_fault(error).map_or(SendFailure::Closed, SendFailure::Tls),
    };
    SendError { unsent, cause }
}

/// Returns the fault of TLS that ended a connection.
fn tls_fault(error: &hyper::Error) -> Option<TlsFault> {
    TlsFault::of_io(error.source()?.downcast_ref()?)
}

/// The socket, shared so that the pool can check if its peer is still connected.
#[derive(Clone)]
struct Socket(Rc<RefCell<Limited>>);

/// A stream from which a limited number of bytes is read in one turn.
struct Limited {
    io: TokioIo<Take<Stream>>,
    budget: ReadBudget,
}

impl Socket {
    fn new(stream: Stream, turn: &Turn) -> Self {
        let io = TokioIo::new(stream.take(0));
        Self(Rc::new(RefCell::new(Limited { io, budget: ReadBudget::new(turn) })))
    }
}

impl Limited {
    fn stream(&mut self) -> &mut Stream {
        self.io.inner_mut().get_mut()
    }
}

impl hyper::rt::Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Limited { io, budget } = &mut *self.0.borrow_mut();
        let limit = ready!(budget.poll(cx));
        io.inner_mut().set_limit(limit as u64);
        ready!(Pin::new(&mut *io).poll_read(cx, into))?;
        budget.spend(limit - io.inner().limit() as usize);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.0.borrow_mut().stream()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.borrow_mut().stream()).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.borrow_mut().stream()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.borrow_mut().stream()).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::time::Duration;

    use connect::{Address, Offer, Target};
    use hyper::rt::{Read as _, ReadBuf};

    use super::*;
    use crate::limits;

    #[test]
    fn backlog_is_read_in_several_turns() {
        const BACKLOG: usize = 4 * limits::TURN_READ_BYTES;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sending = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&[b'x'; BACKLOG]).unwrap();
            stream
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let target = Target::new(Address::host("127.0.0.1", port), None);
            let stream = target.connect(Offer::Http1, Duration::from_secs(20)).await.unwrap();
            // All bytes have arrived, or wait in the server's socket.
            let _server = sending.join().unwrap();
            let turn = Turn::default();
            let mut socket = Socket::new(stream, &turn);
            let mut left = BACKLOG;
            while left > 0 {
                let before = left;
                poll_fn(|cx| {
                    turn.begin();
                    let mut bytes = [0; BACKLOG];
                    let mut into = ReadBuf::new(&mut bytes);
                    while Pin::new(&mut socket).poll_read(cx, into.unfilled()).map(Result::unwrap).is_ready()
                    {
                    }
                    left -= into.filled().len();
                    if left == before { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                assert!(before - left <= limits::TURN_READ_BYTES, "{} bytes in a turn", before - left);
            }
        });
    }
}
