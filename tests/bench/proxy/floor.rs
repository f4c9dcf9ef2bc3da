//! The lower bound of a proxy in user space: receive and send, without reading the bytes. One thread, one task per
//! connection, one buffer for all of them.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use crate::{Failure, socket};

/// Relays until it is stopped.
pub(crate) fn run(listen: &str, upstream: &str) -> Result<(), Failure> {
    socket::runtime()?.block_on(async {
        let listener = socket::listen(listen)?;
        loop {
            let (client, _) = listener.accept().await?;
            client.set_nodelay(true)?;
            let upstream = upstream.to_owned();
            // A failed connection ends both of its directions and nothing else.
            tokio::spawn(async move { drop(relay(client, &upstream).await) });
        }
    })
}

async fn relay(mut client: TcpStream, upstream: &str) -> io::Result<()> {
    let mut server = socket::connect(upstream).await?;
    let (mut up, mut down) = (Way::default(), Way::default());
    poll_fn(|cx| {
        if let Poll::Ready(end) = down.pump(&mut server, &mut client, cx) {
            return Poll::Ready(end);
        }
        up.pump(&mut client, &mut server, cx)
    })
    .await
}

/// One direction.
#[derive(Default)]
struct Way {
    /// Bytes that the receiver has not accepted; nothing is read while there are some.
    waiting: Vec<u8>,
}

impl Way {
    /// Copies the available bytes. Ready at the sender's end.
    fn pump(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.waiting.is_empty() {
                let sent = ready!(Pin::new(&mut *to).poll_write(cx, &self.waiting))?;
                self.waiting.drain(..sent);
            }
            self.waiting = Vec::new();
            let moved = ready!(socket::poll_read(from, cx, |bytes, cx| {
                if bytes.is_empty() {
                    return Ok(None);
                }
                let sent = match Pin::new(&mut *to).poll_write(cx, bytes) {
                    Poll::Ready(sent) => sent?,
                    Poll::Pending => 0,
                };
                Ok::<_, io::Error>(Some(bytes[sent..].to_vec()))
            }))??;
            match moved {
                None => return Poll::Ready(Ok(())),
                Some(rest) => self.waiting = rest,
            }
        }
    }
}
