//! A connection that switched protocols (101): bytes are copied both ways, unread, until both sides are closed.

use std::io;

use bytes::Bytes;
use socket2::SockRef;
use tokio::net::TcpStream;

use crate::capacity::Permit;

/// The upstream's side of a tunnel.
pub(crate) struct UpstreamIo {
    pub(crate) stream: TcpStream,
    /// The bytes read after the upstream's 101.
    pub(crate) first: Bytes,
    /// Its places among the upstream's connections and among all sockets.
    pub(crate) _places: (Option<Permit>, Permit),
}

/// Copies bytes until each side has closed its half, or one of them fails.
pub(crate) async fn run(client: &TcpStream, first: Bytes, far: UpstreamIo) -> io::Result<()> {
    tokio::try_join!(pump(client, &far.stream, first), pump(&far.stream, client, far.first))?;
    Ok(())
}

async fn pump(from: &TcpStream, to: &TcpStream, first: Bytes) -> io::Result<()> {
    write_all(to, &first).await?;
    drop(first);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        from.readable().await?;
        match from.try_read(&mut buffer) {
            Ok(0) => return SockRef::from(to).shutdown(std::net::Shutdown::Write),
            Ok(read) => write_all(to, &buffer[..read]).await?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The buffer of each direction, bytes; tunnels carry audio and events, not downloads.
const BUFFER_BYTES: usize = 8 * 1024;
