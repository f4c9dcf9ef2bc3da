//! A connected byte stream: TCP or a Unix socket, with or without TLS.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::fault::TlsFault;
use crate::socket::{Direct, Socket};

/// The protocol that client and server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1; always without TLS.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connected byte stream. Dropping it closes its socket.
#[derive(Debug)]
pub struct Stream(Layer);

#[derive(Debug)]
enum Layer {
    Clear {
        socket: Socket,
        /// True until the first byte was read, which shows if the server speaks TLS.
        is_unread: bool,
    },
    Tls(Box<TlsStream<Socket>>),
}

impl Stream {
    pub(crate) fn clear(socket: Socket) -> Self {
        Self(Layer::Clear { socket, is_unread: true })
    }

    pub(crate) fn tls(stream: TlsStream<Socket>) -> Self {
        Self(Layer::Tls(Box::new(stream)))
    }

    /// Returns the agreed protocol.
    pub fn protocol(&self) -> Protocol {
        match &self.0 {
            Layer::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2") => Protocol::Http2,
            Layer::Clear { .. } | Layer::Tls(_) => Protocol::Http1,
        }
    }

    /// Returns the alert by which the server rejects this client after the handshake, as TLS 1.3 allows; `None` once it
    /// has sent anything else, such as a session ticket, or closed the connection.
    pub(crate) async fn rejected(&mut self) -> Option<TlsFault> {
        poll_fn(|cx| {
            let mut byte = [0];
            let read = Pin::new(&mut *self).poll_read(cx, &mut ReadBuf::new(&mut byte));
            let Layer::Tls(tls) = &self.0 else { return Poll::Ready(None) };
            let session = tls.get_ref().1;
            let may_reject = session.protocol_version() == Some(ProtocolVersion::TLSv1_3)
                && session.tls13_tickets_received() == 0;
            match read {
                Poll::Ready(Err(error)) => Poll::Ready(TlsFault::of_io(&error)),
                Poll::Pending if may_reject => Poll::Pending,
                _ => Poll::Ready(None),
            }
        })
        .await
    }

    /// Returns true if an idle stream can still be used: nothing is unread, and the server has not closed it. Asks the
    /// kernel, not the runtime. Session tickets of TLS are read and do not count.
    pub fn is_alive(&mut self) -> bool {
        match &mut self.0 {
            Layer::Clear { socket, .. } => socket.is_quiet(),
            Layer::Tls(tls) => is_session_alive(tls),
        }
    }
}

#[cfg(test)]
impl Stream {
    pub(crate) fn handshake_kind(&self) -> Option<rustls::HandshakeKind> {
        match &self.0 {
            Layer::Clear { .. } => None,
            Layer::Tls(tls) => tls.get_ref().1.handshake_kind(),
        }
    }
}

fn is_session_alive(tls: &mut TlsStream<Socket>) -> bool {
    let (socket, session) = tls.get_mut();
    for _ in 0..TICKET_READS {
        match session.process_new_packets() {
            Ok(state) if state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed() => {}
            _ => return false,
        }
        match session.read_tls(&mut Direct(socket)) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
    false
}

/// Reads of session tickets in one check: a server sends two to four; one that sends more is not reused.
const TICKET_READS: usize = 16;

/// The first bytes of a TLS alert, which a TLS server sends to a client without TLS.
const ALERT_RECORD: [u8; 2] = [21, 3];

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Layer::Clear { socket, is_unread } => {
                if !*is_unread {
                    return Pin::new(socket).poll_read(cx, buffer);
                }
                let before = buffer.filled().len();
                ready!(Pin::new(socket).poll_read(cx, buffer))?;
                *is_unread = false;
                if buffer.filled()[before..].starts_with(&ALERT_RECORD) {
                    return Poll::Ready(Err(TlsFault::expected().into()));
                }
                Poll::Ready(Ok(()))
            }
            Layer::Tls(tls) => Pin::new(tls).poll_read(cx, buffer).map_err(TlsFault::in_io),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Layer::Clear { socket, .. } => Pin::new(socket).poll_write(cx, bytes),
            Layer::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Layer::Clear { socket, .. } => Pin::new(socket).poll_write_vectored(cx, slices),
            Layer::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Layer::Clear { socket, .. } => Pin::new(socket).poll_flush(cx),
            Layer::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Layer::Clear { socket, .. } => Pin::new(socket).poll_shutdown(cx),
            Layer::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
