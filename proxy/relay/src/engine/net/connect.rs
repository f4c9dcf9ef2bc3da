//! Connecting to an upstream.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::Upstream;

/// The reason why a connection failed.
#[derive(Debug)]
pub(crate) enum ConnectError {
    Timeout,
    /// The process has no descriptor or memory for another socket.
    Exhausted,
    Io(io::Error),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        if is_exhausted(&error) { Self::Exhausted } else { Self::Io(error) }
    }
}

/// Connects to the first of the upstream's addresses that accepts.
pub(crate) async fn connect(upstream: &Upstream, timeout: Duration) -> Result<TcpStream, ConnectError> {
    let connected = tokio::time::timeout(timeout, try_each(upstream)).await;
    Ok(connected.map_err(|_elapsed| ConnectError::Timeout)??)
}

async fn try_each(upstream: &Upstream) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host((&*upstream.host, upstream.port)).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns true if the process, or the machine, is out of descriptors or memory.
fn is_exhausted(error: &io::Error) -> bool {
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.raw_os_error(), Some(ENOMEM | ENFILE | EMFILE | ENOBUFS))
}
