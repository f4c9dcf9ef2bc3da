//! TLS on a client's socket. The session is driven by the reads and writes of its connection: no task, no copy beyond
//! the library's own buffers. A write becomes records that are sent in the same turn (law 2).

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{ServerConfig, ServerConnection};
use tenant::CertificateNames;
use tokio::io::Interest;

use super::socket::{Output, Socket};
use crate::client_certificate::certificate_names;
use crate::limits;

/// The server's side of a TLS session.
pub(crate) struct Tls {
    session: RefCell<ServerConnection>,
    /// True once a byte of the client was taken.
    has_begun: Cell<bool>,
    /// The names in the client's verified certificate, if it presented one. Read once.
    certificate: OnceCell<Option<Arc<CertificateNames>>>,
}

/// The reason why a connection has no session.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The client closed the connection before it sent a byte: a probe of a load balancer, for example.
    Unbegun,
    /// The client speaks HTTP without TLS.
    Http,
    /// The client sent something else, or the session was refused on either side.
    Tls(rustls::Error),
    /// The connection broke.
    Io(io::Error),
}

impl Tls {
    /// A session that begins with the handshake.
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut session = ServerConnection::new(config)?;
        session.set_buffer_limit(Some(limits::BUFFER_BYTES));
        Ok(Self { session: RefCell::new(session), has_begun: Cell::new(false), certificate: OnceCell::new() })
    }

    /// Takes bytes that were read before the handshake.
    pub(crate) fn take(&self, mut bytes: &[u8]) -> Result<(), HandshakeError> {
        if let Some(first) = bytes.first()
            && !self.has_begun.replace(true)
            && first.is_ascii_uppercase()
        {
            return Err(HandshakeError::Http);
        }
        let mut session = self.session.borrow_mut();
        while !bytes.is_empty() {
            session.read_tls(&mut bytes).map_err(HandshakeError::Io)?;
            session.process_new_packets().map_err(HandshakeError::Tls)?;
        }
        Ok(())
    }

    /// Ready once the handshake has ended.
    pub(crate) fn poll_handshake(
        &self,
        socket: &Socket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), HandshakeError>> {
        let done = ready!(self.poll_steps(socket, cx));
        if matches!(done, Err(HandshakeError::Tls(_))) {
            // The alert that says why; a client that does not take it gets none.
            let _ = self.session.borrow_mut().write_tls(&mut &*socket);
        }
        Poll::Ready(done)
    }

    fn poll_steps(&self, socket: &Socket, cx: &mut Context<'_>) -> Poll<Result<(), HandshakeError>> {
        loop {
            while self.wants_write() {
                ready!(socket.poll_write_ready(cx)).map_err(HandshakeError::Io)?;
                match self.write_to(socket) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                        return Poll::Ready(Err(HandshakeError::Io(error)));
                    }
                    _ => {}
                }
            }
            if !self.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            ready!(socket.poll_read_ready(cx)).map_err(HandshakeError::Io)?;
            let mut wire = [0; limits::HANDSHAKE_READ_BYTES];
            match socket.try_read(&mut wire) {
                Ok(0) if !self.has_begun.get() => return Poll::Ready(Err(HandshakeError::Unbegun)),
                Ok(0) => {
                    return Poll::Ready(Err(HandshakeError::Io(io::ErrorKind::UnexpectedEof.into())));
                }
                Ok(read) => self.take(&wire[..read])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(HandshakeError::Io(error))),
            }
        }
    }

    /// Returns true until the handshake has ended.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.borrow().is_handshaking()
    }

    /// True if HTTP/2 was agreed, false if HTTP/1.1 was; `None` if the client named no protocol.
    pub(crate) fn is_http2(&self) -> Option<bool> {
        self.session.borrow().alpn_protocol().map(|protocol| protocol == b"h2")
    }

    /// The names in the client's verified certificate, if it presented one.
    pub(crate) fn certificate(&self) -> Option<&Arc<CertificateNames>> {
        let names = self.certificate.get_or_init(|| {
            let session = self.session.borrow();
            certificate_names(session.peer_certificates()?.first()?).map(Arc::new)
        });
        names.as_ref()
    }

    /// Reads all plaintext that has arrived and fits into `buffer`. The end of the connection without an announcement
    /// reads as an end, as it does without TLS: the framing of HTTP tells whether a message is complete.
    pub(crate) fn poll_read(
        &self,
        socket: &Socket,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut session = self.session.borrow_mut();
        let mut filled = 0;
        loop {
            match session.reader().read(&mut buffer[filled..]) {
                Ok(0) => return Poll::Ready(Ok(filled)),
                Ok(read) => {
                    filled += read;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(filled)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            match socket.poll_read_ready(cx) {
                Poll::Pending if filled > 0 => return Poll::Ready(Ok(filled)),
                ready => ready!(ready)?,
            }
            receive(&mut session, socket)?;
        }
    }

    /// Makes records of the bytes, for [`write_to`](Self::write_to) to send; returns the number of bytes.
    pub(crate) fn write(&self, output: Output<'_>) -> io::Result<usize> {
        let mut session = self.session.borrow_mut();
        match output {
            Output::Slice(bytes) => session.writer().write(bytes),
            Output::Slices(slices) => session.writer().write_vectored(slices),
        }
    }

    /// Returns true if records wait to be sent.
    pub(crate) fn wants_write(&self) -> bool {
        self.session.borrow().wants_write()
    }

    /// Sends records, in one write.
    pub(crate) fn write_to(&self, mut socket: &Socket) -> io::Result<usize> {
        self.session.borrow_mut().write_tls(&mut socket)
    }

    /// Makes the record that announces the end of writing.
    pub(crate) fn close(&self) {
        self.session.borrow_mut().send_close_notify();
    }

    /// Returns once the client has announced the end, or the session is broken. Reads ahead for that, as far as the
    /// session keeps plaintext; the next read returns it.
    pub(crate) async fn closed_by_client(&self, socket: &Socket) {
        loop {
            match socket.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => {}
                _ => return,
            }
            match self.read_ahead(socket) {
                ReadAhead::All => {}
                ReadAhead::Some => tokio::time::sleep(limits::TLS_RECHECK).await,
                ReadAhead::End => return,
            }
        }
    }

    fn read_ahead(&self, socket: &Socket) -> ReadAhead {
        let mut session = self.session.borrow_mut();
        loop {
            match session.process_new_packets() {
                Ok(state) if state.peer_has_closed() => return ReadAhead::End,
                Ok(state) if state.plaintext_bytes_to_read() >= limits::TLS_READ_AHEAD_BYTES => {
                    return ReadAhead::Some;
                }
                Ok(_) => {}
                Err(_) => return ReadAhead::End,
            }
            match receive(&mut session, socket) {
                Ok(0) => return ReadAhead::All,
                Ok(_) => {}
                Err(_) => return ReadAhead::End,
            }
        }
    }
}

/// The bytes that a session has read ahead.
enum ReadAhead {
    /// All bytes that arrived.
    All,
    /// As many bytes as it keeps; the socket may have more.
    Some,
    /// The end of the session, or an error.
    End,
}

/// Reads records once; returns the number of bytes, which is 0 if there are none now. What the session has to answer,
/// such as an update of keys, is sent as far as the socket takes it.
fn receive(session: &mut ServerConnection, mut socket: &Socket) -> io::Result<usize> {
    let read = match session.read_tls(&mut socket) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        read => read?,
    };
    let processed = session.process_new_packets();
    if session.wants_write() {
        let _ = session.write_tls(&mut socket);
    }
    processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(read)
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbegun => f.write_str("the client closed the connection before it sent a byte"),
            Self::Http => f.write_str("the client speaks HTTP without TLS on a TLS listener: use https://"),
            Self::Tls(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandshakeError {}
