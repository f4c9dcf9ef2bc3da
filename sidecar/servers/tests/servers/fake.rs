//! A server on loopback with a configured reply per path, which records the requests. It writes raw bytes to the
//! socket, so that it can send what no library sends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The reply to a path.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status with a body.
    Status(u16, String),
    /// 200 with a body and header fields, each with its line end.
    Page(&'static str, String),
    /// No reply.
    Nothing,
    /// A body shorter than its `Content-Length`.
    Cut,
    /// 200 with an endless body.
    Endless,
    /// Bytes that are not HTTP.
    Noise,
}

/// A listener with its replies; other paths get 404.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    replies: BTreeMap<&'static str, Reply>,
    requests: Vec<String>,
    /// Streams held open, so that a waiting peer keeps waiting.
    held: Vec<TcpStream>,
}

impl Fake {
    /// Starts to listen, until the end of the test program.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let server = fake.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = server.clone();
                std::thread::spawn(move || server.answer(stream));
            }
        });
        fake
    }

    /// Sets the reply to a GET of `path`.
    pub(crate) fn set(&self, path: &'static str, reply: Reply) -> &Self {
        self.state().replies.insert(path, reply);
        self
    }

    /// Sets the metrics page.
    pub(crate) fn page(&self, text: &str) -> &Self {
        self.set("/metrics", Reply::Page("", text.to_owned()))
    }

    /// Returns all requested paths, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let Some(first) = lines.next() else { return };
        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        assert!(first.starts_with("GET "), "{first}");
        assert!(
            head.iter().any(|line| line.eq_ignore_ascii_case(&format!("host: {}", self.address))),
            "{head:?}"
        );
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let says = {
            let mut state = self.state();
            let says = state.replies.get(path.as_str()).cloned();
            state.requests.push(path);
            says.unwrap_or(Reply::Status(404, "Not Found".to_owned()))
        };
        // An error means that the peer left early.
        let _ = match says {
            Reply::Status(status, body) => {
                write!(stream, "HTTP/1.1 {status} So\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
            Reply::Page(fields, body) => {
                write!(stream, "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
            }
            Reply::Cut => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nvllm:x 1"),
            Reply::Noise => write!(stream, "\u{7f}\u{1}\u{2}\r\n\r\n"),
            Reply::Endless => endless(&mut stream),
            Reply::Nothing => {
                self.state().held.push(stream);
                return;
            }
        };
    }
}

fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
    let lines = "vllm:num_requests_running{engine=\"0\"} 1\n".repeat(1000);
    loop {
        stream.write_all(lines.as_bytes())?;
    }
}
