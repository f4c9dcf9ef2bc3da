//! Signals: SIGTERM and SIGINT drain and exit 0, a second one exits at once, SIGHUP reloads files.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::child::{PATIENCE, Running, get, get_until, silent_server};

#[test]
fn stop_signal_drains_and_exits_0() {
    for signal in ["TERM", "INT"] {
        let upstream = silent_server(([127, 0, 0, 1], 0).into());
        let mut running = Running::start(upstream, &["--drain-delay-ms", "0"]);
        running.signal(signal);
        assert_eq!(running.ended(), Some(0), "{signal}");
    }
}

#[test]
fn readiness_fails_first_while_connections_are_still_served() {
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let mut running = Running::start(upstream, &["--drain-delay-ms", "1500"]);
    get_until(running.admin, "/readyz", |status, _| status == 200);
    running.signal("TERM");
    get_until(running.admin, "/readyz", |status, body| {
        status == 503 && body.contains("draining: stopping after")
    });
    assert!(TcpStream::connect(running.data).is_ok(), "new connections are still taken");
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn request_in_flight_is_cut_after_the_grace() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let mut running = Running::start(address, &["--drain-delay-ms", "0", "--drain-grace-ms", "700"]);
    let mut client = TcpStream::connect(running.data).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(client, "GET /never HTTP/1.1\r\nHost: {}\r\n\r\n", running.data).unwrap();
    let _unanswered = first_request(&upstream);
    let told = Instant::now();
    running.signal("TERM");
    let mut answer = Vec::new();
    // Cut: with or without a reset, but not with an answer.
    let _ = client.read_to_end(&mut answer);
    assert!(told.elapsed() >= Duration::from_millis(600), "it had its grace: {:?}", told.elapsed());
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(running.ended(), Some(0));
}

/// The first connection with a request; probes only connect.
fn first_request(upstream: &TcpListener) -> TcpStream {
    loop {
        let (mut stream, _) = upstream.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        if stream.read(&mut [0; 64]).unwrap_or(0) > 0 {
            return stream;
        }
    }
}

#[test]
fn second_signal_exits_at_once() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let upstream = silent_server(([127, 0, 0, 1], 0).into());
        let mut running = Running::start(upstream, &["--drain-delay-ms", "60000"]);
        running.signal(signal);
        running.line("draining");
        assert!(running.is_alive());
        running.signal(signal);
        assert_eq!(running.ended(), Some(code), "{signal}");
    }
}

#[test]
fn hangup_reloads_files() {
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let mut running = Running::start(upstream, &["--drain-delay-ms", "0"]);
    running.signal("HUP");
    running.line("SIGHUP: reloading tenants and prices");
    assert_eq!(get(running.admin, "/livez").0, 200);
    running.signal("TERM");
    assert_eq!(running.ended(), Some(0));
}
