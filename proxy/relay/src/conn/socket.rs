//! A client's socket: TCP, or a Unix socket of this machine. All calls return at once.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{Interest, Ready};
use tokio::net::{TcpStream, UnixStream};

use crate::limits;

/// A connected socket.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The bytes of one write.
#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    /// One slice.
    Slice(&'a [u8]),
    /// Several slices, written in one call.
    Slices(&'a [IoSlice<'a>]),
}

/// Calls a method that both kinds of socket have.
macro_rules! of {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream) => $call,
        }
    };
}

impl Socket {
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of!(self, stream => stream.poll_read_ready(cx))
    }

    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of!(self, stream => stream.poll_write_ready(cx))
    }

    /// Waits for one of these events.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        of!(self, stream => stream.ready(interest).await)
    }

    /// Returns once the peer has reset the connection or, unless it may close its half, has ended its side, even if
    /// bytes before that end are unread.
    pub(crate) async fn ended(&self, half_close: bool) {
        // "Priority" stands for the end of the peer's side here: tokio reports that end with it, and these sockets are
        // not registered for urgent data. "Readable" would report unread bytes, too.
        let ends = if half_close { Interest::ERROR } else { Interest::PRIORITY | Interest::ERROR };
        while self.ready(ends).await.is_ok_and(Ready::is_empty) {}
    }

    /// Reads once.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = of!(self, stream => stream.try_read(buffer))?;
        if 0 < read && read < buffer.len() {
            // The socket is drained: clear its readiness, which saves a further read.
            let drained = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
            let _ = of!(self, stream => stream.try_io(Interest::READABLE, drained));
        }
        Ok(read)
    }

    /// Writes once.
    pub(crate) fn try_write(&self, output: Output<'_>) -> io::Result<usize> {
        match output {
            Output::Slice(bytes) => of!(self, stream => stream.try_write(bytes)),
            Output::Slices(slices) => of!(self, stream => stream.try_write_vectored(slices)),
        }
    }

    /// The error that the kernel reports once.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.kernel().take_error().ok().flatten()
    }

    /// Shuts down writing.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        match self.kernel().shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        }
    }

    /// Sets the kernel to end a TCP connection whose peer acknowledges nothing for `stall`. The kernel has no such
    /// limit for a Unix socket.
    pub(crate) fn set_user_timeout(&self, stall: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream).set_tcp_user_timeout(Some(stall)),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Sets the kernel to probe a TCP peer that is silent, and to end the connection if it does not answer. A Unix socket's
    /// peer cannot vanish.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let probes = TcpKeepalive::new()
            .with_time(limits::PROBE_AFTER)
            .with_interval(limits::PROBE_INTERVAL)
            .with_retries(limits::PROBES);
        match self {
            Self::Tcp(stream) => SockRef::from(stream).set_tcp_keepalive(&probes),
            Self::Unix(_) => Ok(()),
        }
    }

    /// Returns true if there is nothing to read, as far as the runtime knows. Registers no task.
    pub(crate) fn is_quiet(&self) -> bool {
        of!(self, stream => stream.try_io(Interest::READABLE, || Ok(()))).is_err()
    }

    fn kernel(&self) -> SockRef<'_> {
        of!(self, stream => SockRef::from(stream))
    }
}

/// Reads and writes once per call, for a library that expects the traits of the standard library.
impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_read(buffer)
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(Output::Slice(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write(Output::Slices(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream, UnixStream};

    use super::Socket;

    /// Asserts that the peer's end is seen behind an unread byte, and that nothing is polled before it.
    async fn end_is_seen(socket: Socket, mut peer: impl tokio::io::AsyncWrite + Unpin) {
        peer.write_all(b"x").await.unwrap();
        let mut polls = 0;
        let mut ended = pin!(socket.ended(false));
        let mut counted = pin!(std::future::poll_fn(|cx| {
            polls += 1;
            ended.as_mut().poll(cx)
        }));
        tokio::time::timeout(Duration::from_millis(200), &mut counted).await.expect_err("it has not ended");
        let mut byte = [0];
        assert_eq!(socket.try_read(&mut byte).unwrap(), 1, "the byte is unread");
        peer.write_all(b"x").await.unwrap();
        drop(peer);
        counted.await;
        assert!(polls <= 5, "{polls}");
    }

    #[tokio::test]
    async fn end_behind_an_unread_byte_is_seen_without_polling() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        end_is_seen(Socket::Tcp(listener.accept().await.unwrap().0), peer).await;
        let (socket, peer) = UnixStream::pair().unwrap();
        end_is_seen(Socket::Unix(socket), peer).await;
    }

    #[tokio::test]
    async fn silent_peer_is_probed_after_15_s_and_given_up_after_30() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = Socket::Tcp(listener.accept().await.unwrap().0);
        assert!(!socket.kernel().keepalive().unwrap());
        socket.probe().unwrap();
        let kernel = socket.kernel();
        assert!(kernel.keepalive().unwrap());
        let (silence, probes) =
            (kernel.tcp_keepalive_time().unwrap(), kernel.tcp_keepalive_retries().unwrap());
        assert_eq!(silence, Duration::from_secs(15));
        assert_eq!(silence + probes * kernel.tcp_keepalive_interval().unwrap(), Duration::from_secs(30));
    }

    #[tokio::test]
    async fn half_that_may_be_closed_is_no_end() {
        let (socket, mut peer) = UnixStream::pair().unwrap();
        let socket = Socket::Unix(socket);
        peer.shutdown().await.unwrap();
        let wait = Duration::from_millis(50);
        tokio::time::timeout(wait, socket.ended(true)).await.expect_err("a half may be closed");
        tokio::time::timeout(Duration::from_secs(60), socket.ended(false)).await.expect("it is an end");
    }
}
