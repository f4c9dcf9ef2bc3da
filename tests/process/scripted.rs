//! A server that sends a scripted response to any request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Answers each request with the result of `answer` for its head, and closes the connection; runs until the tests end.
pub(crate) fn server(answer: impl Fn(&str) -> Vec<u8> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(connection);
                if let Some(head) = request(&mut reader) {
                    // A client that left has no effect on this server.
                    let _ = reader.into_inner().write_all(&answer(&head));
                }
            });
        }
    });
    address
}

/// Reads a request to its end; returns its head. `None` without one, as for a readiness probe.
fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(head)
}
