//! The memory of client connections that wait for their next request.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use chance::Side;

use crate::proxy::Proxy;
use crate::scripted;

const CONNECTIONS: usize = 500;

/// The number of connections that have buffers at the same time. The allocator keeps the memory of their buffers.
const BATCH: usize = 50;

/// The time after which an idle connection has released its buffers.
const RELEASE: Duration = Duration::from_millis(300);

/// A bound of the memory of an idle connection: its task, its socket, its deadlines. With one buffer it is 9 KiB.
const MAX_BYTES: usize = 6 * 1024;

/// Sends a request, and reads its response.
fn exchange(stream: &mut TcpStream) {
    stream.write_all(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n").expect("it reads");
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\nok") {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).expect("it answers");
        assert!(read > 0, "it closed the connection");
        response.extend_from_slice(&bytes[..read]);
    }
}

#[test]
fn idle_connections_have_no_buffers() {
    if Side::Clients.excludes("the bound is of connections without TLS") {
        return;
    }
    let server =
        scripted::server(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".to_vec());
    let proxy = Proxy::start(server, &["--workers", "1"]);
    let connect = || TcpStream::connect(proxy.data).expect("the data port is open");
    // Loads the code and makes the state that all connections share.
    for _ in 0..20 {
        exchange(&mut connect());
    }
    let before = proxy.resident();
    let mut connections = Vec::new();
    while connections.len() < CONNECTIONS {
        for _ in 0..BATCH {
            let mut connection = connect();
            exchange(&mut connection);
            connections.push(connection);
        }
        std::thread::sleep(RELEASE);
    }
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let bytes = proxy.resident().saturating_sub(before) as usize / CONNECTIONS;
        if bytes <= MAX_BYTES {
            break;
        }
        assert!(Instant::now() < end, "{bytes} bytes a connection");
        std::thread::sleep(Duration::from_millis(100));
    }
}
