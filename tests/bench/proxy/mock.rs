//! The upstream: sends each request the reply it asks for, one write per frame. Everything except a frame's stamp is
//! built before the first byte is sent. When the client of a held stream has left, it prints the time on stdout.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until, timeout};

use crate::socket::Stream;
use crate::tls::Certificate;
use crate::wire::{self, Ask, Frames};
use crate::{Failure, child, socket};

/// The pause between two frames of a held stream.
const HELD_PAUSE: Duration = Duration::from_millis(10);

/// Maximum bytes of a request.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// Serves until its parent has ended; by TLS if a certificate is given. Prints its address on stdout.
pub(crate) fn run(certificate: Option<&Certificate>) -> Result<(), Failure> {
    let tls = certificate.map(Certificate::acceptor).transpose()?;
    socket::runtime()?.block_on(async {
        let listener = socket::listen("127.0.0.1:0")?;
        child::say(&listener.local_addr()?.to_string())?;
        loop {
            let (stream, _) = listener.accept().await?;
            let tls = tls.clone();
            // A client that leaves ends its connection only.
            tokio::spawn(async move {
                if let Ok(stream) = Stream::accept(stream, tls.as_ref()).await {
                    drop(serve(stream).await);
                }
            });
        }
    })
}

async fn serve(mut stream: Stream) -> io::Result<()> {
    let mut inbox = Vec::with_capacity(1024);
    let json = json_reply();
    while let Some(ask) = next(&mut stream, &mut inbox).await? {
        match ask {
            Ask::Json => {
                stream.write_all(json.as_bytes()).await?;
                stream.flush().await?;
            }
            Ask::Held => {
                // An error is an end, too: a proxy may reset the connection.
                let _ = hold(&mut stream, &Frames::new(0)).await;
                return child::say(&wire::now_us().to_string());
            }
            Ask::Stream { text, pause_us, pad } => {
                let pause = Duration::from_micros(pause_us.into());
                answer(&mut stream, text, pause, &Frames::new(pad)).await?;
            }
        }
    }
    Ok(())
}

/// The whole reply to a request without a stream.
pub(crate) fn json_reply() -> String {
    format!(
        "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
        wire::JSON_REPLY.len(),
        wire::JSON_REPLY
    )
}

/// The head of every stream.
pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\nserver: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// The next whole request; `None` at the end.
async fn next(stream: &mut Stream, inbox: &mut Vec<u8>) -> io::Result<Option<Ask>> {
    loop {
        if inbox.starts_with(b"GET ") && inbox.ends_with(b"\r\n\r\n") {
            // Routers ask whether the server is healthy.
            inbox.clear();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
            stream.flush().await?;
        }
        if let Some((ask, bytes)) = request(inbox)? {
            inbox.drain(..bytes);
            return Ok(Some(ask));
        }
        let read = socket::read(stream, |bytes| {
            inbox.extend_from_slice(bytes);
            bytes.len()
        });
        if read.await? == 0 {
            return Ok(None);
        }
    }
}

/// The first request in the received bytes, with its length, once it is whole.
pub(crate) fn request(inbox: &[u8]) -> io::Result<Option<(Ask, usize)>> {
    let Some(head) = memchr::memmem::find(inbox, b"\r\n\r\n").map(|at| at + 4) else {
        return if inbox.len() > MAX_REQUEST_BYTES { Err(odd("too long a head")) } else { Ok(None) };
    };
    let head_text = String::from_utf8_lossy(&inbox[..head]).to_ascii_lowercase();
    let length = head_text.split_once("content-length:").and_then(|(_, rest)| rest.lines().next());
    let length: usize = length.and_then(|l| l.trim().parse().ok()).ok_or_else(|| odd("no length"))?;
    if length > MAX_REQUEST_BYTES {
        return Err(odd("too long a body"));
    }
    let Some(body) = inbox.get(head..head + length) else { return Ok(None) };
    let ask = std::str::from_utf8(body).ok().and_then(Ask::read).ok_or_else(|| odd("no such wish"))?;
    Ok(Some((ask, head + length)))
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Writes text frames until the client has left.
async fn hold(stream: &mut Stream, frames: &Frames) -> io::Result<()> {
    stream.write_all(STREAM_HEAD.as_bytes()).await?;
    stream.write_all(&wire::chunk(&frames.role)).await?;
    let mut text = frames.text.clone();
    loop {
        wire::stamp(&mut text[frames.stamp.clone()], wire::now_us());
        stream.write_all(&wire::chunk(&text)).await?;
        stream.flush().await?;
        // Some proxies notice that their client has left only when they send.
        if let Ok(read) = timeout(HELD_PAUSE, socket::read(stream, <[u8]>::len)).await
            && read? == 0
        {
            return Ok(());
        }
    }
}

/// Writes a stream. The role and the first text are sent back to back, as real servers do: a proxy that waits for an
/// acknowledgement between the two shows it here.
async fn answer(stream: &mut Stream, text: u32, pause: Duration, frames: &Frames) -> io::Result<()> {
    stream.write_all(STREAM_HEAD.as_bytes()).await?;
    stream.write_all(&wire::chunk(&frames.role)).await?;
    stream.flush().await?;
    let mut chunk = wire::chunk(&frames.text);
    let before = memchr::memchr(b'\n', &chunk).map_or(0, |at| at + 1);
    let stamp = before + frames.stamp.start..before + frames.stamp.end;
    let started = Instant::now();
    for index in 0..text {
        if index > 0 && !pause.is_zero() {
            sleep_until(started + pause * index).await;
        }
        wire::stamp(&mut chunk[stamp.clone()], wire::now_us());
        stream.write_all(&chunk).await?;
        stream.flush().await?;
    }
    stream.write_all(&wire::chunk(&frames.finish)).await?;
    let mut end = wire::chunk(&frames.done);
    end.extend_from_slice(&wire::chunk(b""));
    stream.write_all(&end).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_only_when_whole() {
        let ask = Ask::Stream { text: 3, pause_us: 0, pad: 0 };
        let whole = ask.request(wire::PATH, "upstream");
        for end in 0..whole.len() {
            assert!(request(&whole[..end]).unwrap().is_none());
        }
        let twice = whole.repeat(2);
        assert_eq!(request(&twice).unwrap(), Some((ask, whole.len())));
    }
}
