//! A receiver that answers each request as scripted, and remembers what it accepted.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The answer to one request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// 204: the events are stored.
    Accept,
    /// The events are stored, and the connection closes without an answer.
    AcceptSilently,
    /// A status, with `Retry-After` in seconds if there is one.
    Status(u16, Option<u64>),
    /// The connection closes without an answer.
    Close,
    /// The connection closes within the head of the answer.
    CutHead,
    /// No answer.
    Hang,
    /// One byte each 20 ms.
    Slow,
    /// Bytes that are not HTTP.
    Garbage,
    /// 307 to another address.
    Redirect,
    /// 200 with this content type, if there is one, and this body.
    Page(Option<&'static str>, &'static str),
    /// An endless head.
    Flood,
}

/// A receiver, which runs until the end of the tests.
#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    /// Connections to the target of redirects.
    pub(crate) redirected: Arc<AtomicUsize>,
}

/// What a receiver has seen.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// The head of each request, and the time at which it was read.
    pub(crate) requests: Vec<(String, Instant)>,
    /// The stored events by id, as a receiver keeps them that removes duplicates.
    pub(crate) events: BTreeMap<String, Value>,
    /// The number of stored events with their duplicates.
    pub(crate) stored: usize,
}

impl Receiver {
    /// Starts a receiver. `answer`: the answer to a request, by its number from 0 and its events.
    pub(crate) fn start(answer: impl Fn(usize, &[Value]) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = elsewhere.local_addr().unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            redirected: Arc::default(),
        };
        let redirected = Arc::clone(&receiver.redirected);
        thread::spawn(move || {
            while elsewhere.accept().is_ok() {
                redirected.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (seen, answer) = (Arc::clone(&receiver.seen), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, seen, answer) = (stream.unwrap(), Arc::clone(&seen), Arc::clone(&answer));
                // An error means that the sender closed the connection.
                thread::spawn(move || while serve(&mut stream, &seen, &*answer, target).unwrap_or(false) {});
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/v1/events?key=secret", self.address)
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

/// Serves one request; returns true if another may follow on the connection.
fn serve(
    stream: &mut TcpStream,
    seen: &Mutex<Seen>,
    answer: &dyn Fn(usize, &[Value]) -> Answer,
    target: SocketAddr,
) -> std::io::Result<bool> {
    let Some((head, body)) = request(stream) else { return Ok(false) };
    let events: Vec<Value> = serde_json::from_slice(&body).expect("a list of events");
    let answer = {
        let mut seen = seen.lock().unwrap();
        let answer = answer(seen.requests.len(), &events);
        seen.requests.push((head, Instant::now()));
        if matches!(answer, Answer::Accept | Answer::AcceptSilently) || is_accepting(&answer) {
            seen.stored += events.len();
            seen.events
                .extend(events.into_iter().map(|event| (event["id"].as_str().unwrap().to_owned(), event)));
        }
        answer
    };
    match answer {
        Answer::Accept => write!(stream, "HTTP/1.1 204 No Content\r\n\r\n")?,
        Answer::AcceptSilently | Answer::Close => return Ok(false),
        Answer::Status(status, retry_after) => {
            let field = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
            write!(stream, "HTTP/1.1 {status} Fault\r\n{field}content-length: 2\r\n\r\nno")?;
        }
        Answer::CutHead => {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-le")?;
            return Ok(false);
        }
        Answer::Hang => {
            // Until the sender closes.
            let _ = stream.read(&mut [0; 16])?;
            return Ok(false);
        }
        Answer::Slow => {
            for byte in "HTTP/1.1 200 OK\r\nx-more: ".bytes().cycle() {
                stream.write_all(&[byte])?;
                thread::sleep(Duration::from_millis(20));
            }
        }
        Answer::Garbage => {
            stream.write_all(&[0, 255, 13, 10, 7, 13, 10, 13, 10])?;
            return Ok(false);
        }
        Answer::Redirect => {
            write!(
                stream,
                "HTTP/1.1 307 Elsewhere\r\nlocation: http://{target}/\r\ncontent-length: 0\r\n\r\n"
            )?;
        }
        Answer::Page(kind, body) => {
            let field = kind.map(|kind| format!("content-type: {kind}\r\n")).unwrap_or_default();
            write!(stream, "HTTP/1.1 200 OK\r\n{field}content-length: {}\r\n\r\n{body}", body.len())?;
        }
        Answer::Flood => {
            write!(stream, "HTTP/1.1 200 OK\r\n")?;
            loop {
                stream.write_all(b"x-more: and more of the same, and more of the same\r\n")?;
            }
        }
    }
    Ok(true)
}

/// Returns true for a success that a receiver of events answers, not a web server.
fn is_accepting(answer: &Answer) -> bool {
    matches!(answer, Answer::Page(kind, body) if body.is_empty() || kind.is_none_or(|kind| !kind.contains("html")))
}

fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let body = &bytes[end + 4..];
        if body.len() >= length.parse::<usize>().unwrap() {
            return Some((head, body.to_vec()));
        }
    }
}
