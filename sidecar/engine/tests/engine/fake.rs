//! A server on loopback that answers each path as it is told, and remembers what it was asked.
//! Raw bytes over a socket, so that it can do what no library would.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// What it answers to a path.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// This status, with this body.
    Status(u16, String),
    /// 200 with this body and these fields, each with its line end.
    Page(&'static str, String),
    /// Nothing, for ever.
    Nothing,
    /// A head that promises more than comes.
    Cut,
    /// 200 and a body without end.
    Endless,
    /// Bytes that are not HTTP.
    Noise,
}

/// A listener and its script; paths that are not in it get 404.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    says: BTreeMap<&'static str, Says>,
    asked: Vec<String>,
    /// Held open, so that a peer that waits goes on waiting.
    held: Vec<TcpStream>,
}

impl Fake {
    /// Listens, until the end of the test program.
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

    /// From now on it says this to a GET of `path`.
    pub(crate) fn says(&self, path: &'static str, says: Says) -> &Self {
        self.state().says.insert(path, says);
        self
    }

    /// A metrics page.
    pub(crate) fn page(&self, text: &str) -> &Self {
        self.says("/metrics", Says::Page("", text.to_owned()))
    }

    /// Every path that was asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
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
            let says = state.says.get(path.as_str()).cloned();
            state.asked.push(path);
            says.unwrap_or(Says::Status(404, "Not Found".to_owned()))
        };
        // A peer that left early is its own affair.
        let _ = match says {
            Says::Status(status, body) => {
                write!(stream, "HTTP/1.1 {status} So\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
            Says::Page(fields, body) => {
                write!(stream, "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
            }
            Says::Cut => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nvllm:x 1"),
            Says::Noise => write!(stream, "\u{7f}\u{1}\u{2}\r\n\r\n"),
            Says::Endless => endless(&mut stream),
            Says::Nothing => {
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
