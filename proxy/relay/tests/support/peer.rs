//! One end of a TCP connection that sends and expects raw bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::{DEADLINE, now};

/// One end of a connection.
pub(crate) struct Peer {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        Self { stream, read: Vec::new() }
    }

    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends as much as the other side reads; false if it is closed.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
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

    /// The time after `since` at which the other side closed or reset the connection. Its bytes before that are
    /// dropped.
    pub(crate) fn closed_after(&mut self, since: Instant) -> Duration {
        let mut away = [0; 65536];
        loop {
            match self.stream.read(&mut away) {
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

    /// Closes the write side only.
    pub(crate) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    fn more(&mut self) -> bool {
        let mut chunk = [0; 65536];
        match self.stream.read(&mut chunk) {
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
