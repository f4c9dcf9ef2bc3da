//! A client's socket: TCP, or a Unix socket of this machine. All calls return at once.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{Interest, Ready};
use tokio::net::{TcpStream, UnixStream};

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

    /// Returns true if there is nothing to read, as far as the runtime knows. Registers no task.
    #[cfg(feature = "spike-engine")]
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
