//! One end of a TCP connection, which sends and expects raw bytes: within TLS if it is a client of a proxy with TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::{DEADLINE, now, tls};

/// One end of a connection.
pub(crate) struct Peer {
    wire: Wire,
    read: Vec<u8>,
}

/// A connection, with TLS if it is that of a client of a proxy with TLS.
pub(crate) enum Wire {
    Clear(TcpStream),
    /// The handshake begins with the first write or read.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        match stream.peer_addr().is_ok_and(tls::is_expected_at) {
            true => Self::with_tls(stream),
            false => Self::Clear(stream),
        }
    }

    fn with_tls(stream: TcpStream) -> Self {
        let name = ServerName::try_from(tls::NAME).unwrap();
        let session = ClientConnection::new(tls::client(&["http/1.1"]), name).unwrap();
        Self::Tls(Box::new(StreamOwned::new(session, stream)))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Clear(stream) => stream,
            Self::Tls(tls) => &tls.sock,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.read(into),
            Self::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(stream) => stream.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Clear(stream) => stream.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { wire: Wire::new(stream), read: Vec::new() }
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.wire.socket()
    }

    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let tls = match &mut self.wire {
            Wire::Clear(stream) => return stream.read(into),
            Wire::Tls(tls) => tls,
        };
        while tls.conn.is_handshaking() {
            match tls.conn.complete_io(&mut tls.sock) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => drop(done?),
            }
        }
        // The library's stream would first write what a failed write left behind.
        loop {
            match tls.conn.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The end of the connection without an announcement: a truncation.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            tls.conn.read_tls(&mut tls.sock)?;
            tls.conn.process_new_packets().map_err(io::Error::other)?;
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        assert!(self.try_send(bytes), "the other side is closed");
    }

    /// Sends as much as the other side reads; false if it is closed.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.wire.write_all(bytes.as_ref()).and_then(|()| self.wire.flush()).is_ok()
    }

    /// Reads until the bytes read so far end a message head; `None` at a clean end.
    pub(crate) fn head(&mut self) -> Option<String> {
        let end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more() {
                assert!(self.read.is_empty(), "ended inside a head: {:?}", self.text());
                return None;
            }
        };
        Some(String::from_utf8(self.read.drain(..end).collect()).unwrap())
    }

    /// Reads exactly this many bytes.
    pub(crate) fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.read.len() < length {
            assert!(self.more(), "ended after {} of {length} bytes", self.read.len());
        }
        self.read.drain(..length).collect()
    }

    /// Reads up to and with `mark`.
    pub(crate) fn until(&mut self, mark: &str) -> String {
        let mut looked = 0;
        let end = loop {
            if let Some(at) = find(&self.read[looked..], mark.as_bytes()) {
                break looked + at + mark.len();
            }
            looked = (self.read.len() + 1).saturating_sub(mark.len());
            assert!(self.more(), "no {mark:?} in {:?}", self.text());
        };
        String::from_utf8(self.read.drain(..end).collect()).unwrap()
    }

    /// Reads to the end, clean or not.
    pub(crate) fn rest(&mut self) -> String {
        while self.more() {}
        String::from_utf8(std::mem::take(&mut self.read)).unwrap()
    }

    /// Reads the end of the connection.
    pub(crate) fn ends_without_a_reset(&mut self) {
        assert_eq!(self.read_some(&mut [0]).unwrap(), 0);
    }

    /// The time after `since` at which the other side closed or reset the connection. Its bytes before that are
    /// dropped.
    pub(crate) fn closed_after(&mut self, since: Instant) -> Duration {
        let mut away = [0; 65536];
        loop {
            match self.read_some(&mut away) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("not closed within {DEADLINE:?}")
                }
                Err(_) => break,
            }
        }
        now().duration_since(since)
    }

    /// Closes the write side only: within TLS by its announcement, with the socket open.
    pub(crate) fn half_close(&mut self) {
        match &mut self.wire {
            Wire::Clear(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Wire::Tls(tls) => {
                tls.conn.send_close_notify();
                tls.flush().unwrap();
            }
        }
    }

    /// Announces the end within TLS, and closes.
    pub(crate) fn close(mut self) {
        self.half_close();
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(self.stream()).set_linger(Some(Duration::ZERO)).unwrap();
    }

    fn more(&mut self) -> bool {
        let mut chunk = [0; 65536];
        match self.read_some(&mut chunk) {
            Ok(0) => false,
            Ok(read) => {
                self.read.extend_from_slice(&chunk[..read]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error} after {:?}", self.text()),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.read[..self.read.len().min(500)]).into_owned()
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
