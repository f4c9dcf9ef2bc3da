//! OTLP collectors for tests: one that misbehaves, with one fault each, and a [`faithful`] one. This one uses
//! threads and the standard library only, over HTTP, so that no library corrects its
//! faults.

pub mod faithful;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::SockRef;

/// The fault of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault: it accepts every export.
    None,
    /// It does not listen.
    Down,
    /// It accepts connections, and neither reads nor responds.
    Blackhole,
    /// It sends one byte a second.
    Slow,
    /// It rejects every request: 400.
    Refusing,
    /// It is unavailable: 503, without `Retry-After`.
    Failing,
    /// Its response is a gigabyte.
    Huge,
    /// Its response is not HTTP.
    Garbage,
    /// Its response is a gzip bomb.
    Bomb,
    /// It redirects every request to itself.
    Redirecting,
    /// It resets each connection in the middle of the request.
    Resetting,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 10] = [
        Self::Down,
        Self::Blackhole,
        Self::Slow,
        Self::Refusing,
        Self::Failing,
        Self::Huge,
        Self::Garbage,
        Self::Bomb,
        Self::Redirecting,
        Self::Resetting,
    ];

    /// Returns its name on a command line and in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "healthy",
            Self::Down => "down",
            Self::Blackhole => "blackhole",
            Self::Slow => "slow",
            Self::Refusing => "refusing",
            Self::Failing => "failing",
            Self::Huge => "huge",
            Self::Garbage => "garbage",
            Self::Bomb => "bomb",
            Self::Redirecting => "redirecting",
            Self::Resetting => "resetting",
        }
    }
}

/// A collector on a port of its own; dropping it ends its threads.
pub struct Collector {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    fault: Fault,
    stopped: AtomicBool,
    requests: AtomicU64,
    redirected: AtomicU64,
}

impl Collector {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// No port is available.
    pub fn start(fault: Fault) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        if fault == Fault::Bomb {
            // Here, so that no measurement includes it.
            bomb();
        }
        let shared = Arc::new(Shared {
            fault,
            stopped: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            redirected: AtomicU64::new(0),
        });
        let accepting = match fault {
            Fault::Down => None,
            _ => {
                let shared = Arc::clone(&shared);
                Some(std::thread::spawn(move || accept(&listener, &shared)))
            }
        };
        Ok(Self { address, shared, accepting })
    }

    /// Returns its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of complete requests.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of requests to the target of a redirection.
    pub fn redirected(&self) -> u64 {
        self.shared.redirected.load(Ordering::Relaxed)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // Wakes the accept; an error means that it has ended already.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::Relaxed) {
            return;
        }
        let (Ok(stream), shared) = (stream, Arc::clone(shared)) else { continue };
        std::thread::spawn(move || {
            // An error is a peer that hung up.
            let _ = serve(stream, &shared);
        });
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    stream.set_write_timeout(Some(MAX_WAIT))?;
    loop {
        match shared.fault {
            Fault::Blackhole => return wait_for_stop(shared),
            Fault::Resetting => {
                let _ = stream.read(&mut [0; 64])?;
                // Closing with unread data and without linger sends a reset.
                return SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
            _ => {}
        }
        let Some(path) = request(&mut stream, shared)? else { return Ok(()) };
        shared.requests.fetch_add(1, Ordering::Relaxed);
        if path.starts_with(REDIRECT_PATH) {
            shared.redirected.fetch_add(1, Ordering::Relaxed);
        }
        match shared.fault {
            Fault::None => answer(&mut stream, "200 OK", "", b"")?,
            Fault::Slow => return send_slowly(&mut stream, shared),
            Fault::Refusing => answer(&mut stream, "400 Bad Request", "", b"no")?,
            Fault::Failing => answer(&mut stream, "503 Service Unavailable", "", b"")?,
            Fault::Huge => return send_endless(&mut stream, shared),
            Fault::Garbage => return stream.write_all(&[0x16, 0x03, 0x01, 0xff, 0x00, b'\n', 0xfe, b'\n']),
            Fault::Bomb => answer(&mut stream, "200 OK", "content-encoding: gzip\r\n", bomb())?,
            Fault::Redirecting => {
                let location = format!("location: {REDIRECT_PATH}\r\n");
                answer(&mut stream, "307 Temporary Redirect", &location, b"")?;
            }
            Fault::Down | Fault::Blackhole | Fault::Resetting => return Ok(()),
        }
    }
}

/// Reads a whole request; returns its path, or `None` if the peer closed.
fn request(stream: &mut TcpStream, shared: &Shared) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length: Option<usize> =
                text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
            match length {
                Some(length) if bytes.len() >= head + 4 + length => return Ok(Some(path)),
                None if bytes.ends_with(b"0\r\n\r\n") => return Ok(Some(path)),
                _ => {}
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) if is_timeout(&error) && !shared.stopped.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
}

fn answer(stream: &mut TcpStream, status: &str, more: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

fn send_slowly(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    for byte in b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n" {
        if shared.stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn send_endless(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n\r\n")?;
    let mut left = FLOOD_BYTES;
    let piece = [b'x'; 64 * 1024];
    while left > 0 && !shared.stopped.load(Ordering::Relaxed) {
        stream.write_all(&piece)?;
        left -= piece.len();
    }
    stream.shutdown(Shutdown::Both)
}

fn wait_for_stop(shared: &Shared) -> io::Result<()> {
    let began = Instant::now();
    while !shared.stopped.load(Ordering::Relaxed) && began.elapsed() < MAX_WAIT {
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Returns zeros as gzip: some 60 KB that inflate to a thousand times as much. Built once, because building costs more
/// than its effect on an exporter.
fn bomb() -> &'static [u8] {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    BOMB.get_or_init(|| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![0; 1 << 20];
        for _ in 0..BOMB_MIB {
            encoder.write_all(&zeros).expect("a Vec takes any bytes");
        }
        encoder.finish().expect("a Vec takes any bytes")
    })
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The path of a redirection.
const REDIRECT_PATH: &str = "/elsewhere";
/// The interval at which a waiting thread checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum life of a waiting thread.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Bytes of a huge response, after which the connection ends: bounded for the sake of the machine.
const FLOOD_BYTES: usize = 1 << 30;
/// MiB to which the bomb inflates.
const BOMB_MIB: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(fault: Fault) -> (Collector, Vec<u8>) {
        let collector = Collector::start(fault).expect("a port");
        let mut stream = TcpStream::connect(collector.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_millis(1500))).expect("a timeout can be set");
        let request =
            "POST /v1/traces HTTP/1.1\r\nhost: c\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc";
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = vec![0; 64 * 1024];
        let read = stream.read(&mut answer).unwrap_or_default();
        answer.truncate(read);
        (collector, answer)
    }

    #[test]
    fn each_fault_shows_on_the_wire() {
        let says = |fault, what: &str| {
            let (collector, answer) = exchange(fault);
            let text = String::from_utf8_lossy(&answer).into_owned();
            assert!(text.starts_with(what), "{}: {text}", fault.name());
            collector.requests()
        };
        assert_eq!(says(Fault::None, "HTTP/1.1 200 OK"), 1);
        assert_eq!(says(Fault::Refusing, "HTTP/1.1 400"), 1);
        assert_eq!(says(Fault::Failing, "HTTP/1.1 503"), 1);
        assert_eq!(says(Fault::Redirecting, "HTTP/1.1 307"), 1);
        assert_eq!(
            says(
                Fault::Bomb,
                "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-encoding: gzip"
            ),
            1
        );
        assert_eq!(says(Fault::Huge, "HTTP/1.1 200 OK"), 1);
        assert_eq!(says(Fault::Slow, "H"), 1);
        assert_eq!(exchange(Fault::Garbage).1.first(), Some(&0x16));
        assert!(exchange(Fault::Blackhole).1.is_empty());
        assert!(exchange(Fault::Resetting).1.is_empty());
    }

    #[test]
    fn bomb_is_small_and_inflates_to_its_size() {
        let bomb = bomb();
        assert!(bomb.len() < 128 * 1024, "{} bytes", bomb.len());
        let inflated = io::copy(&mut flate2::read::GzDecoder::new(bomb), &mut io::sink());
        assert_eq!(inflated.expect("it is gzip"), (BOMB_MIB as u64) << 20);
    }

    #[test]
    fn down_collector_refuses_connections() {
        let collector = Collector::start(Fault::Down).expect("a port");
        assert!(TcpStream::connect(collector.address).is_err());
    }
}
