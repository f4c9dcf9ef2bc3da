//! The sockets of mock, load and floor: no Nagle, and reads through one buffer per thread, so that a waiting connection
//! needs no memory of its own. Those of mock and load may use TLS.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::tls;

const READ_BYTES: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A connection with or without TLS.
pub(crate) enum Stream {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects, without Nagle.
    pub(crate) async fn connect(address: &str, tls: Option<&TlsConnector>) -> io::Result<Self> {
        let stream = connect(address).await?;
        Ok(match tls {
            None => Self::Clear(stream),
            Some(tls) => Self::Tls(Box::new(tls.connect(tls::server_name(), stream).await?.into())),
        })
    }

    /// Serves an accepted connection, without Nagle.
    pub(crate) async fn accept(stream: TcpStream, tls: Option<&TlsAcceptor>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(match tls {
            None => Self::Clear(stream),
            Some(tls) => Self::Tls(Box::new(tls.accept(stream).await?.into())),
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A single-threaded runtime.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// Connects, without Nagle.
pub(crate) async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A listener with a backlog of a thousand connections.
pub(crate) fn listen(address: &str) -> io::Result<tokio::net::TcpListener> {
    let address: std::net::SocketAddr = address.parse().map_err(io::Error::other)?;
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

/// Reads once and passes on the bytes; empty at the end.
pub(crate) fn poll_read<S: AsyncRead + Unpin, R>(
    stream: &mut S,
    cx: &mut Context<'_>,
    show: impl FnOnce(&[u8], &mut Context<'_>) -> R,
) -> Poll<io::Result<R>> {
    BUFFER.with_borrow_mut(|buffer| {
        let mut read = ReadBuf::new(buffer);
        // Not `try_read`: this function knows that a short read has emptied the socket, and does not read again.
        ready!(Pin::new(stream).poll_read(cx, &mut read))?;
        Poll::Ready(Ok(show(read.filled(), cx)))
    })
}

/// Reads once and passes on the bytes; empty at the end.
pub(crate) async fn read<S, R>(stream: &mut S, mut show: impl FnMut(&[u8]) -> R) -> io::Result<R>
where
    S: AsyncRead + Unpin,
{
    poll_fn(|cx| poll_read(stream, cx, |bytes, _| show(bytes))).await
}
