//! A connection that its server closes between two requests, so late that only the write of the next request shows it:
//! nothing of that was sent, so it is sent on another connection. The server has a Unix socket, whose end has no delay.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use connect::{Address, Target};
use relay::{Refusal, UsageStep};
use usage::Policy;

use super::Proxy;
use crate::support::{DEADLINE, Peer, TestPlan, eventually};
use crate::tenants::{exchange, post};
use crate::usage::{PLAIN, policy};

crate::support::wires::table! {
    (http1_upstreams, "HTTP/2 announces the end of a connection"):
        request_that_meets_the_end_is_sent_again,
        body_that_follows_its_head_is_sent_again,
        edited_request_that_meets_the_end_is_sent_again,
        request_without_another_connection_is_answered;
}

const CHAT: &str = "/v1/chat/completions";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A path for one socket.
struct Path(PathBuf);

static PATHS: AtomicUsize = AtomicUsize::new(0);

impl Path {
    fn new() -> Self {
        let number = PATHS.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("unsent-{}-{number}.sock", std::process::id())))
    }

    fn listen(&self) -> UnixListener {
        UnixListener::bind(&self.0).unwrap()
    }

    fn target(&self) -> Target {
        Target::new(Address::Unix(self.0.as_path().into()), None)
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A proxy with a client. Its only connection to its server is closed once it has decided about the next request. The
/// receiver has the further requests.
fn closing(change: impl FnOnce(&mut TestPlan)) -> (Proxy, Peer, mpsc::Receiver<String>) {
    let path = Path::new();
    let listener = path.listen();
    let proxy = Proxy::with(([127, 0, 0, 1], 1).into(), |plan| {
        change(plan);
        plan.upstreams[0].target = path.target();
    });
    let (saw, sees) = mpsc::channel();
    let mut client = proxy.connect();
    client.send(post(CHAT, "", "{}"));
    let (mut first, _) = listener.accept().unwrap();
    read(&mut first).unwrap();
    first.write_all(OK).unwrap();
    client.head();
    assert_eq!(client.exactly(2), b"ok");
    proxy.seen().at_begin = Some(Box::new(move || drop(first)));
    std::thread::spawn(move || {
        let _path = path;
        let (mut second, _) = listener.accept().unwrap();
        while let Some(request) = read(&mut second) {
            saw.send(request).unwrap();
            second.write_all(OK).unwrap();
        }
    });
    (proxy, client, sees)
}

/// Reads a request.
fn read(server: &mut UnixStream) -> Option<String> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = server.read(&mut buffer).unwrap();
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let is_whole =
                length.map_or(body.ends_with("0\r\n\r\n"), |length| body.len() >= length.parse().unwrap());
            if is_whole {
                return Some(text.into_owned());
            }
        }
        if read == 0 {
            return None;
        }
    }
}

fn request_that_meets_the_end_is_sent_again() {
    let long = format!("{{\"x\":\"{}\"}}", "x".repeat(200_000));
    let chunked = |body: &str| {
        let length = body.len();
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        )
    };
    for (request, body) in [
        (post(CHAT, "", "{}"), "{}"),
        (post(CHAT, "", ""), ""),
        (post(CHAT, "", &long), &long),
        (chunked("{}"), "{}"),
        (chunked(&long), &long),
    ] {
        for asked in [Policy::Observe, Policy::Inject] {
            let (proxy, mut client, sees) = closing(policy(asked));
            assert!(exchange(&mut client, &request).0.starts_with("HTTP/1.1 200"));
            let sent = sees.recv_timeout(DEADLINE).unwrap();
            let (head, sent) = sent.split_once("\r\n\r\n").unwrap();
            let is_chunked = head.to_ascii_lowercase().contains("chunked");
            let chunks: Vec<&str> =
                if is_chunked { sent.split("\r\n").skip(1).step_by(2).collect() } else { vec![sent] };
            assert!(chunks.concat() == body, "{head}");
            // The new connection is kept as any other.
            exchange(&mut client, post(CHAT, "", "again"));
            assert!(sees.recv_timeout(DEADLINE).unwrap().ends_with("\r\n\r\nagain"));
            assert_eq!(proxy.seen().refused, []);
        }
    }
}

fn body_that_follows_its_head_is_sent_again() {
    for first in ["", "begun"] {
        let (proxy, mut client, sees) = closing(|_| {});
        let length = first.len() + "ended".len();
        client.send(format!("POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{first}"));
        eventually("it is closed", || proxy.seen().at_begin.is_none());
        assert!(exchange(&mut client, "ended").0.starts_with("HTTP/1.1 200"));
        assert!(sees.recv_timeout(DEADLINE).unwrap().ends_with(&format!("\r\n\r\n{first}ended")));
        assert_eq!(proxy.seen().refused, []);
    }
}

fn edited_request_that_meets_the_end_is_sent_again() {
    let (proxy, mut client, sees) = closing(policy(Policy::Inject));
    assert!(exchange(&mut client, post(CHAT, "", PLAIN)).0.starts_with("HTTP/1.1 200"));
    assert!(sees.recv_timeout(DEADLINE).unwrap().contains("include_usage"));
    // The first request was not one for a stream.
    assert_eq!(proxy.seen().usage, [UsageStep::NotStreamed, UsageStep::Injected]);
    assert_eq!(proxy.seen().refused, []);
}

fn request_without_another_connection_is_answered() {
    let path = Path::new();
    let listener = path.listen();
    let proxy = Proxy::with(([127, 0, 0, 1], 1).into(), |plan| plan.upstreams[0].target = path.target());
    let mut client = proxy.connect();
    client.send(post(CHAT, "", "{}"));
    let (mut server, _) = listener.accept().unwrap();
    read(&mut server).unwrap();
    server.write_all(OK).unwrap();
    client.head();
    assert_eq!(client.exactly(2), b"ok");
    proxy.seen().at_begin = Some(Box::new(move || drop((listener, server))));
    client.send(post(CHAT, "", "{}"));
    assert!(client.head().unwrap().starts_with("HTTP/1.1 502"));
    assert_eq!(proxy.seen().refused, [Refusal::UpstreamUnreachable]);
}
