//! TLS on a client's socket. The session is driven by the reads and writes of its connection: no task, no copy beyond
//! the library's own buffers. A write becomes records that are sent in the same turn (law 2).

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::{ServerConfig, ServerConnection};
use tenant::CertificateNames;
use tokio::io::Interest;

use super::socket::{Output, Socket};
use super::write_progress::WriteProgress;
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
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The client closed the connection before it sent a byte: a probe of a load balancer, for example.
    #[error("the client closed the connection before it sent a byte")]
    Unbegun,
    /// The client speaks HTTP without TLS.
    #[error("the client speaks HTTP without TLS on a TLS listener: use https://")]
    Http,
    /// The client sent something else, or the session was refused on either side.
    #[error("{0}")]
    Tls(rustls::Error),
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Tls {
    /// A session that begins with the handshake.
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut session = ServerConnection::new(config)?;
        session.set_buffer_limit(Some(limits::BUFFER_BYTES));
        Ok(Self { session: RefCell::new(session), has_begun: Cell::new(false), certificate: OnceCell::new() })
    }

    /// Takes bytes of the handshake.
    fn take(&self, mut bytes: &[u8]) -> Result<(), HandshakeError> {
        if let Some(first) = bytes.first()
            && !self.has_begun.replace(true)
            && first.is_ascii_uppercase()
        {
            return Err(HandshakeError::Http);
        }
        let mut session = self.session.borrow_mut();
        while !bytes.is_empty() {
            session.read_tls(&mut bytes)?;
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
            // The alert that states the reason. A client that does not take it now does not get it.
            let _ = self.session.borrow_mut().write_tls(&mut &*socket);
        }
        Poll::Ready(done)
    }

    fn poll_steps(&self, socket: &Socket, cx: &mut Context<'_>) -> Poll<Result<(), HandshakeError>> {
        loop {
            while self.wants_write() {
                ready!(socket.poll_write_ready(cx))?;
                match self.write_to(socket) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                        return Poll::Ready(Err(error.into()));
                    }
                    _ => {}
                }
            }
            if !self.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            ready!(socket.poll_read_ready(cx))?;
            let mut wire = [0; limits::HANDSHAKE_READ_BYTES];
            match socket.try_read(&mut wire) {
                Ok(0) if !self.has_begun.get() => return Poll::Ready(Err(HandshakeError::Unbegun)),
                Ok(0) => return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())),
                Ok(read) => self.take(&wire[..read])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error.into())),
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
    /// reads as an end, as it does without TLS: the framing of HTTP shows if a message is complete.
    pub(crate) fn poll_read(
        &self,
        (socket, writes): (&Socket, &WriteProgress),
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut session = self.session.borrow_mut();
        let (mut filled, mut received) = (0, 0);
        // Fills the buffer from several records: a turn for each record would cost a poll and a parse.
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
            if received >= limits::TLS_TURN_BYTES {
                if filled > 0 {
                    return Poll::Ready(Ok(filled));
                }
                // The records were empty: the other connections have a turn.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match socket.poll_read_ready(cx) {
                Poll::Pending if filled > 0 => return Poll::Ready(Ok(filled)),
                ready => ready!(ready)?,
            }
            received += receive(&mut session, socket, writes)?.unwrap_or(0);
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
    pub(crate) async fn closed_by_client(&self, socket: &Socket, writes: &WriteProgress) {
        loop {
            match self.read_ahead(socket, writes) {
                // The bytes of that event may be read first: the session then has the announcement.
                ReadAhead::Nothing => match socket.ready(Interest::READABLE).await {
                    Ok(ready) if !ready.is_read_closed() => {}
                    _ => return,
                },
                // Records may be empty, so that a session takes any number of them: the other connections have a turn.
                ReadAhead::Bytes => tokio::task::yield_now().await,
                ReadAhead::Full => tokio::time::sleep(limits::TLS_RECHECK).await,
                ReadAhead::End => return,
            }
        }
    }

    fn read_ahead(&self, socket: &Socket, writes: &WriteProgress) -> ReadAhead {
        let mut session = self.session.borrow_mut();
        // Without a read: returns the state after the last one.
        match session.process_new_packets() {
            Ok(state) if state.peer_has_closed() => return ReadAhead::End,
            Ok(state) if state.plaintext_bytes_to_read() >= limits::TLS_READ_AHEAD_BYTES => {
                return ReadAhead::Full;
            }
            Ok(_) => {}
            Err(_) => return ReadAhead::End,
        }
        match receive(&mut session, socket, writes) {
            Ok(None) => ReadAhead::Nothing,
            Ok(Some(1..)) => ReadAhead::Bytes,
            // A read may see the end of the connection before the event of it.
            Ok(Some(0)) => ReadAhead::End,
            Err(error) => {
                // The socket has reported it, and no other read will see it.
                writes.note(Some(&error));
                ReadAhead::End
            }
        }
    }
}

/// The result of reading ahead once.
enum ReadAhead {
    /// The socket has no bytes now.
    Nothing,
    /// Bytes of the client.
    Bytes,
    /// The session keeps as many bytes as it may; the socket may have more.
    Full,
    /// The end of the session or of the connection, or an error.
    End,
}

/// Reads records once; returns the number of bytes, which is 0 at the end of the connection, or `None` if there are none
/// now. Records that wait, such as those of an earlier write or an alert, are sent as far as the socket takes them.
fn receive(
    session: &mut ServerConnection,
    mut socket: &Socket,
    writes: &WriteProgress,
) -> io::Result<Option<usize>> {
    let read = match session.read_tls(&mut socket) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        read => Some(read?),
    };
    let processed = session.process_new_packets();
    if session.wants_write() {
        match session.write_tls(&mut socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => writes.wrote(&written),
        }
        if session.wants_write() {
            writes.block();
        }
    }
    // The alert of a broken session is sent before its error is returned.
    processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::future::{Future as _, poll_fn};
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Poll;
    use std::time::Duration;

    use rcgen::generate_simple_self_signed;
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::io::{AsyncWriteExt as _, Interest};
    use tokio::net::{TcpListener, TcpStream, UnixStream};
    use tokio_rustls::TlsConnector;

    use super::{ReadAhead, Tls};
    use crate::conn::socket::{Output, Socket};
    use crate::conn::write_progress::WriteProgress;
    use crate::limits;

    /// The bytes of one read of the library.
    const READ_BYTES: usize = 4096;

    /// A session, its socket, and the client, which has sent the beginning of a message in this many records, each as
    /// long as a read.
    async fn begun(reads: usize) -> (Tls, Socket, UnixStream) {
        let (tls, _) = new();
        let (socket, mut client) = UnixStream::pair().unwrap();
        for number in 0..reads {
            // A handshake record of 4,091 bytes; the first begins a ClientHello of 65,535.
            let mut record = vec![22, 3, 1, 0x0f, 0xfb];
            if number == 0 {
                record.extend([1, 0, 0xff, 0xff]);
            }
            record.resize(READ_BYTES, 1);
            client.write_all(&record).await.unwrap();
        }
        let socket = Socket::Unix(socket);
        socket.ready(Interest::READABLE).await.unwrap();
        (tls, socket, client)
    }

    /// A session before its handshake, and its certificate.
    fn new() -> (Tls, CertificateDer<'static>) {
        let own = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![own.cert.der().clone()], key.into()).unwrap();
        (Tls::new(Arc::new(config)).unwrap(), own.cert.der().clone())
    }

    #[tokio::test]
    async fn records_sent_by_a_read_end_the_wait() {
        let (tls, certificate) = new();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        let (socket, client) = UnixStream::pair().unwrap();
        let (socket, writes) = (Socket::Unix(socket), WriteProgress::default());
        let connected = TlsConnector::from(config).connect("localhost".try_into().unwrap(), client);
        let established = poll_fn(|cx| tls.poll_handshake(&socket, cx));
        let (established, client) = tokio::join!(established, connected);
        established.unwrap();
        let mut client = client.unwrap();
        // The socket took nothing of an earlier write. Now it does, and the client sends a byte.
        tls.write(Output::Slice(b"x")).unwrap();
        writes.block();
        client.write_all(b"y").await.unwrap();
        client.flush().await.unwrap();
        socket.ready(Interest::READABLE).await.unwrap();
        let mut buffer = [0; 1];
        let read = poll_fn(|cx| tls.poll_read((&socket, &writes), cx, &mut buffer)).await;
        assert!(read.unwrap() == 1 && !tls.wants_write(), "the byte is read, and the records are sent");
        assert!(!writes.is_blocked());
    }

    #[tokio::test]
    async fn timeout_that_is_read_ahead_is_noted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = Socket::Tcp(listener.accept().await.unwrap().0);
        socket.set_user_timeout(Duration::from_millis(100)).unwrap();
        socket.ready(Interest::WRITABLE).await.unwrap();
        while socket.try_write(Output::Slice(&[0; 1 << 16])).is_ok() {}
        let failed = socket.ready(Interest::ERROR);
        tokio::time::timeout(Duration::from_secs(60), failed).await.expect("a timeout").unwrap();
        let writes = WriteProgress::default();
        assert!(writes.arm_timeout());
        new().0.closed_by_client(&socket, &writes).await;
        assert!(writes.has_timed_out());
    }

    /// A read that fills its buffer leaves the socket readable, and the next one is before the event of the end.
    #[tokio::test]
    async fn end_that_is_read_before_its_event_is_an_end() {
        let (tls, socket, client) = begun(1).await;
        drop(client);
        let writes = WriteProgress::default();
        assert!(matches!(tls.read_ahead(&socket, &writes), ReadAhead::Bytes));
        assert!(matches!(tls.read_ahead(&socket, &writes), ReadAhead::End));
    }

    #[tokio::test]
    async fn each_turn_reads_a_limited_number_of_bytes() {
        let reads = limits::TLS_TURN_BYTES / READ_BYTES;
        let (tls, socket, _client) = begun(reads).await;
        let writes = WriteProgress::default();
        let mut polls = 0;
        let mut buffer = [0; 1];
        let read = poll_fn(|cx| {
            polls += 1;
            let read = tls.poll_read((&socket, &writes), cx, &mut buffer);
            // The first poll wakes itself, the second waits for the socket.
            if polls == 2 { Poll::Ready(read.is_pending()) } else { Poll::Pending }
        });
        assert!(tokio::time::timeout(Duration::from_secs(10), read).await.expect("the waker is used"));
    }

    #[tokio::test]
    async fn each_turn_reads_ahead_once() {
        let (tls, socket, _client) = begun(3).await;
        let writes = WriteProgress::default();
        let mut closed = pin!(tls.closed_by_client(&socket, &writes));
        let is_pending = poll_fn(|cx| Poll::Ready(closed.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
        assert_eq!(socket.try_read(&mut [0; 3 * READ_BYTES]).unwrap(), 2 * READ_BYTES);
    }
}
