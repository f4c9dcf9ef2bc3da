//! A scripted inference server: a function handles each connection as raw bytes.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use super::Peer;

/// The server. Its threads end with the test process.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// Runs `script` once per connection, with the connection's number.
    pub(crate) fn start(script: impl Fn(&mut Peer, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, script) = (Arc::clone(&connections), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let script = Arc::clone(&script);
                std::thread::spawn(move || script(&mut Peer::new(stream.unwrap()), number));
            }
        });
        Self { address, connections }
    }

    /// A server that gives the same answer to every request on every connection.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::start(move |peer, _| {
            while let Some(head) = peer.head() {
                body(peer, &head);
                if !peer.try_send(answer) {
                    break;
                }
            }
        })
    }

    /// A server that gives the same answer to every request without a body. The receiver has the heads of the requests.
    pub(crate) fn recording(answer: &'static str) -> (Self, mpsc::Receiver<String>) {
        let (heard, said) = mpsc::channel();
        let upstream = Self::start(move |peer, _| {
            while let Some(head) = peer.head() {
                heard.send(head).unwrap();
                peer.send(answer);
            }
        });
        (upstream, said)
    }

    /// A server that answers the first request of each connection after a signal.
    pub(crate) fn answering_on_signal(answer: &'static str) -> (Self, mpsc::Sender<()>) {
        let (go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let upstream = Self::start(move |peer, _| {
            peer.head();
            wait.lock().unwrap().recv().unwrap();
            peer.send(answer);
            peer.head();
        });
        (upstream, go)
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads the body that a request head announces, without its chunk framing.
pub(crate) fn body(peer: &mut Peer, head: &str) -> Vec<u8> {
    let field = |name: &str| {
        head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    if field("transfer-encoding").is_some() {
        let mut whole = Vec::new();
        loop {
            let size = peer.until("\r\n");
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
            if size == 0 {
                while peer.until("\r\n") != "\r\n" {}
                return whole;
            }
            whole.extend(peer.exactly(size));
            peer.until("\r\n");
        }
    }
    field("content-length").map_or_else(Vec::new, |length| peer.exactly(length.parse().unwrap()))
}
