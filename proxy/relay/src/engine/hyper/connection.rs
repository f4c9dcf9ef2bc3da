//! One connection to an upstream, owned by whoever waits for it. There is no task behind it:
//! [`drive`](Connection::drive) moves it, dropping it closes its socket.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper::rt::ReadBufCursor;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::TcpStream;

use super::tunnel::Far;
use super::upload::Upload;
use crate::Upstream;
use crate::capacity::Permit;
use crate::holder::Holder;
use crate::worker::is_exhausted;

/// One connection to an upstream.
pub(super) struct Connection {
    sender: http1::SendRequest<Upload>,
    /// Gone once it is of no more use.
    protocol: Option<http1::Connection<Socket, Upload>>,
    socket: Socket,
    closed: bool,
    /// Whether it carried a request before this one.
    pub(super) reused: bool,
    /// Its place among those that carry a request, while it does.
    slot: Option<Permit>,
    /// Its place among all sockets.
    place: Permit,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    Timeout,
    /// The process has no descriptor or memory for another socket.
    Exhausted,
    Io(io::Error),
}

impl Connection {
    /// Connects to the first of the upstream's addresses that takes us.
    pub(super) async fn open(
        builder: &http1::Builder,
        upstream: &Upstream,
        timeout: Duration,
        place: Permit,
    ) -> Result<Self, ConnectError> {
        let connected = tokio::time::timeout(timeout, connect(upstream)).await;
        let stream = connected.map_err(|_elapsed| ConnectError::Timeout)?.map_err(|error| {
            if is_exhausted(&error) { ConnectError::Exhausted } else { ConnectError::Io(error) }
        })?;
        let socket = Socket(Rc::new(RefCell::new(TokioIo::new(stream))));
        let (sender, protocol) = builder
            .handshake(socket.clone())
            .await
            .map_err(|error| ConnectError::Io(io::Error::other(error)))?;
        Ok(Self { sender, protocol: Some(protocol), socket, closed: false, reused: false, slot: None, place })
    }

    /// Queues a request; [`drive`](Self::drive) sends it.
    pub(super) fn send(
        &mut self,
        request: Request<Upload>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Upload>>>> + use<> {
        self.sender.try_send_request(request)
    }

    /// Counts it as its next request's, of this holder.
    pub(super) fn occupy(&mut self, slot: Permit, holder: Option<Arc<Holder>>) {
        self.slot = Some(slot);
        self.place.charge(holder);
    }

    /// Counts it as idle, and as no holder's.
    pub(super) fn release(&mut self) {
        self.slot = None;
        self.place.charge(None);
    }

    /// Reads and writes what can be. An error reaches whoever waits for the response or its body.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.closed
            && let Some(protocol) = &mut self.protocol
            && protocol.poll_without_shutdown(cx).is_ready()
        {
            self.closed = true;
        }
    }

    /// Lets go of a closed connection, which gives back a request that it never looked at; false
    /// if it is not closed, or was let go of before.
    pub(super) fn bury(&mut self) -> bool {
        self.closed && self.protocol.take().is_some()
    }

    /// Whether another request may be sent: the last one was fully sent and fully answered, and
    /// the server keeps the connection.
    pub(super) fn is_reusable(&self) -> bool {
        !self.closed && self.sender.is_ready()
    }

    /// Whether an idle connection can still be used. Asks the kernel itself, because the runtime
    /// only knows what it heard the last time it listened.
    pub(super) fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        self.drive(cx);
        if !self.is_reusable() {
            return false;
        }
        let socket = self.socket.0.borrow();
        let peeked = SockRef::from(socket.inner()).peek(&mut [MaybeUninit::uninit()]);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Takes the socket out after the upstream switched protocols.
    pub(super) async fn into_far(mut self) -> Option<Far> {
        std::future::poll_fn(|cx| {
            self.drive(cx);
            if self.closed { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let Self { sender, protocol, socket, slot, place, .. } = self;
        drop(sender);
        let parts = protocol?.into_parts();
        drop(parts.io);
        let stream = Rc::into_inner(socket.0)?.into_inner().into_inner();
        Some(Far { stream, first: parts.read_buf, _places: (slot, place) })
    }
}

async fn connect(upstream: &Upstream) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host((&*upstream.host, upstream.port)).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The socket, shared so that the pool can ask it whether its peer is still there.
#[derive(Clone)]
struct Socket(Rc<RefCell<TokioIo<TcpStream>>>);

impl hyper::rt::Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, into)
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_shutdown(cx)
    }
}
