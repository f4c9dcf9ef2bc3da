//! Collectors with faults that no server library produces.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// No process listens.
    Down,
    /// Reads the request and never answers.
    Blackhole,
    /// Answers one byte at a time.
    Slow,
    Status(u16),
    /// Answers 200 with an endless body.
    Huge,
    /// Answers with an endless head.
    HugeHead,
    /// Answers with bytes that are not HTTP.
    Noise,
    /// Answers 200 with bytes that are no message.
    Garbage,
    /// Answers 200 with a decompression bomb.
    Bomb,
    /// Answers 307 with another address.
    Redirect,
    /// Closes the connection after the first bytes.
    Reset,
}

pub(crate) struct Faulty {
    pub(crate) address: SocketAddr,
    /// The number of connections to the redirect's target.
    pub(crate) redirected: Arc<AtomicUsize>,
}

/// Starts a faulty collector, which runs until the end of the tests.
pub(crate) fn faulty(fault: Fault) -> Faulty {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let redirected = Arc::new(AtomicUsize::new(0));
    if fault == Fault::Bomb {
        assert!(BOMB.len() < 60 * 1024, "{} bytes", BOMB.len());
    }
    if fault == Fault::Down {
        return Faulty { address, redirected };
    }
    let second = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = second.local_addr().unwrap();
    let counter = Arc::clone(&redirected);
    std::thread::spawn(move || {
        while second.accept().is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                // An error means that the client closed the connection, which the tests expect.
                let _ = misbehave(fault, stream, target);
            });
        }
    });
    Faulty { address, redirected }
}

/// 50 MiB compressed to about 50 KiB, which is within the limit of a response.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&vec![0; 50 << 20]).unwrap();
    packed.finish().unwrap()
});

fn misbehave(fault: Fault, mut stream: TcpStream, target: SocketAddr) -> std::io::Result<()> {
    if fault == Fault::Reset {
        stream.read_exact(&mut [0; 4])?;
        return Ok(());
    }
    read_request(&mut stream)?;
    let ok = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n";
    match fault {
        Fault::Down | Fault::Reset | Fault::Blackhole => {}
        Fault::Slow => {
            for byte in format!("{ok}content-length: 0\r\n\r\n").bytes().cycle() {
                stream.write_all(&[byte])?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Fault::Status(status) => {
            write!(stream, "HTTP/1.1 {status} Fault\r\ncontent-length: 2\r\n\r\nno")?;
        }
        Fault::Huge => {
            write!(stream, "{ok}content-length: 1099511627776\r\n\r\n")?;
            loop {
                stream.write_all(&[0; 65536])?;
            }
        }
        Fault::HugeHead => {
            write!(stream, "{ok}")?;
            loop {
                stream.write_all(b"x-more: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")?;
            }
        }
        Fault::Noise => stream.write_all(&[0, 255, 13, 10, 7, 7, 7, 13, 10, 13, 10])?,
        Fault::Garbage => {
            write!(stream, "{ok}connection: close\r\ncontent-length: 9\r\n\r\n<html>...")?;
            return Ok(());
        }
        Fault::Bomb => {
            let length = BOMB.len();
            write!(
                stream,
                "{ok}connection: close\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n"
            )?;
            stream.write_all(&BOMB)?;
            return Ok(());
        }
        Fault::Redirect => write!(
            stream,
            "HTTP/1.1 307 Elsewhere\r\nlocation: http://{target}/v1/traces\r\ncontent-length: 0\r\n\r\n"
        )?,
    }
    // Until the client closes the connection.
    while stream.read(&mut [0; 65536])? > 0 {}
    Ok(())
}

/// Reads a head, and a body if its length is known.
fn read_request(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut read = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let more = stream.read(&mut buffer)?;
        if more == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&buffer[..more]);
        let text = String::from_utf8_lossy(&read);
        if text.starts_with("PRI * HTTP/2") {
            return Ok(());
        }
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text[..end].lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            let head = read.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
            if read.len() >= head + length {
                return Ok(());
            }
        }
    }
}
