//! Bytes that were read and not taken: those by which the protocol was detected, and those behind a message.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

use bytes::{Bytes, BytesMut};

use super::Client;

impl Client {
    /// Returns true if the client uses HTTP/2 from its first byte; `None` if it left before that was known. The TLS
    /// session decides if it has negotiated a protocol, and otherwise the first bytes do: the first byte that differs
    /// from the preface shows HTTP/1, so a short request does not wait. `buffer` receives the bytes; it is borrowed
    /// within one poll only.
    pub(crate) async fn speaks_http2(&self, buffer: &RefCell<Box<[u8]>>) -> io::Result<Option<bool>> {
        if let Some(agreed) = self.tls.as_ref().and_then(|tls| tls.is_http2()) {
            self.set_http2(agreed);
            return Ok(Some(agreed));
        }
        let mut first = BytesMut::new();
        let http2 = loop {
            let read = poll_fn(|cx| {
                let mut buffer = buffer.borrow_mut();
                let read = ready!(self.poll_read(cx, &mut buffer))?;
                first.extend_from_slice(&buffer[..read]);
                Poll::Ready(io::Result::Ok(read))
            });
            if read.await? == 0 {
                return Ok(None);
            }
            if first.starts_with(PREFACE) {
                break true;
            } else if !PREFACE.starts_with(&first) {
                break false;
            }
        };
        if first.starts_with(TLS_RECORD) && self.tls.is_none() {
            tracing::debug!(peer = %self.peer(), "a client speaks TLS on a listener without TLS: use http://");
        }
        self.set_http2(http2);
        self.first.replace(first.freeze());
        Ok(Some(http2))
    }

    /// Takes at most `len_max` of the bytes that were read and not taken.
    pub(crate) fn take_first(&self, len_max: usize) -> Option<Bytes> {
        let mut first = self.first.borrow_mut();
        let taken = first.len().min(len_max);
        (!first.is_empty()).then(|| {
            self.begin_head();
            first.split_to(taken)
        })
    }

    /// Puts bytes that were taken and not used back before the others.
    pub(crate) fn return_first(&self, read: Bytes) {
        let mut first = self.first.borrow_mut();
        *first = match first.is_empty() {
            true => read,
            false => [read, first.clone()].concat().into(),
        };
    }

    /// Adds bytes that were read ahead, behind the others.
    pub(crate) fn add_first(&self, bytes: &[u8]) {
        let mut first = self.first.borrow_mut();
        *first = [&first[..], bytes].concat().into();
    }

    /// The number of bytes that were read and not taken.
    pub(crate) fn first_len(&self) -> usize {
        self.first.borrow().len()
    }
}

/// The first bytes of a client with prior knowledge of HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first bytes of a client with TLS: a record of a handshake.
const TLS_RECORD: &[u8] = &[22, 3];
