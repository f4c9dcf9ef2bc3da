//! The end of a client connection: the client leaves, or the last response was sent.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use meter::Tick;

use super::{Client, Stage};
use crate::limits;

impl Client {
    /// Records that a request was answered before all of its body was read: the connection ends after the answer.
    pub(crate) fn leave_unread(&self) {
        self.unread.set(true);
    }

    /// Sets the kernel to end the connection when its client acknowledges nothing for `stall`, because it reads nothing or
    /// has vanished. Only the kernel can measure that: a socket is writable again only when much of its buffer is free.
    pub(crate) fn end_unread_after(&self, stall: Duration) {
        if self.writes.arm_timeout()
            && let Err(error) = self.socket.set_user_timeout(stall)
        {
            tracing::debug!(%error, "cannot set the timeout of a client's socket");
        }
    }

    /// Sets the kernel to detect that the client of a long request has vanished, which no end of its connection shows (law 4).
    /// The kernel probes only while all bytes are acknowledged, so those of a response must be, within `stall`.
    pub(crate) fn probe_if_long(&self, now: Tick, stall: Duration) {
        let since = self.since();
        let is_long =
            self.stage() == Stage::Busy && u128::from(now.since(since)) >= limits::PROBE_AFTER.as_nanos();
        if !is_long {
            return;
        }
        if !self.is_probed.replace(true)
            && let Err(error) = self.socket.probe()
        {
            tracing::debug!(%error, "cannot probe a client's socket");
        }
        if self.writes.has_written_since(since) {
            self.end_unread_after(stall);
        }
    }

    /// Returns true if the kernel ended the connection because its client read nothing.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.writes.note(self.socket.take_error().as_ref());
        self.writes.has_timed_out()
    }

    /// Returns once the client has left: it has reset the connection or, unless it may close its half, has closed its side or
    /// announced the end of its TLS session.
    pub(crate) async fn gone(&self, half_close: bool) {
        match &self.tls {
            Some(tls) if !half_close => tokio::select! {
                () = self.socket.ended(false) => {}
                () = tls.closed_by_client(&self.socket, &self.writes) => {}
            },
            _ => self.socket.ended(half_close).await,
        }
    }

    /// Returns once the client of a tunnel has left while nothing is read from it: its socket is reset or, in a
    /// session, has been closed for [`limits::CLIENT_CLOSE`]. Clients of other tunnels may close their half.
    pub(crate) async fn left_tunnel(&self, is_session: bool) {
        let closed = async {
            self.gone(false).await;
            tokio::time::sleep(limits::CLIENT_CLOSE).await;
        };
        tokio::select! {
            () = self.gone(true) => {}
            () = closed, if is_session => {}
        }
    }

    /// Ends the connection after its last response: announces the end to a client with TLS, within a limited time.
    /// After an early answer, and if the client has sent more, also ends writing, and reads on, because closing with
    /// unread bytes would cause a reset that destroys the answer.
    pub(crate) async fn linger(&self) {
        // Reads one byte: the content is not needed.
        if matches!(self.socket.try_read(&mut [0]), Ok(1..)) {
            self.leave_unread();
        }
        if self.tls.is_none() && !self.unread.get() {
            return;
        }
        let end = async {
            if poll_fn(|cx| self.poll_close(cx)).await.is_err()
                || !self.unread.get()
                || self.socket.shutdown().is_err()
            {
                return;
            }
            let mut left = limits::LINGER_BYTES;
            // On the heap, because every connection's future has space for it, and few connections linger.
            let mut away = vec![0; limits::LINGER_READ_BYTES];
            while left > 0 {
                match poll_fn(|cx| self.poll_clear(cx, &mut away)).await {
                    Ok(0) | Err(_) => break,
                    Ok(read) => left = left.saturating_sub(read),
                }
            }
        };
        // The end of either direction is the end of the connection.
        let _ = tokio::time::timeout(limits::LINGER, end).await;
    }

    /// Announces the end of writing to a client with TLS, which otherwise takes the end for a truncation.
    pub(super) fn poll_close(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = self.tls.as_ref().filter(|tls| !tls.is_handshaking()) else {
            return Poll::Ready(Ok(()));
        };
        tls.close();
        self.poll_records(cx, tls)
    }
}
