//! A webhook receiver that records its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::proxy::DEADLINE;

/// The requests so far: heads and bodies.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    posted: Arc<Mutex<Vec<String>>>,
}

impl Hook {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let hook = Self { address, posted: Arc::default() };
        let posted = Arc::clone(&hook.posted);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                take(connection, &posted);
            }
        });
        hook
    }

    /// Waits for this number of notices; fails the test after [`DEADLINE`].
    pub(crate) fn until_posted(&self, notices: usize) -> Vec<String> {
        let end = Instant::now() + DEADLINE;
        loop {
            let posted = self.posted();
            if posted.len() >= notices {
                return posted;
            }
            assert!(Instant::now() < end, "{notices} notices were not posted: {posted:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn posted(&self) -> Vec<String> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn take(connection: TcpStream, posted: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    if reader.read_exact(&mut body).is_ok() {
        posted.lock().unwrap_or_else(PoisonError::into_inner).push(head + &String::from_utf8_lossy(&body));
    }
    let _ = reader.into_inner().write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}
