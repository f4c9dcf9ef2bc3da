//! Connections that end while answers are in progress.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use chance::Side;
use meter::{Ending, Provenance};
use relay::ListenAddress;

use super::socket::{Server, closed, connect, send};
use super::{REALTIME, answering, created, delta, done, expect, record, say, until};
use crate::support::{Proxy, eventually};

/// The code and reason of a close frame.
type Closed = Option<(u16, String)>;

/// A server that begins an answer, and ends it on a signal, or with the connection.
fn pausing() -> (Server, mpsc::Sender<()>, mpsc::Receiver<Closed>) {
    let (go, wait) = mpsc::channel::<()>();
    let (saw, seen) = mpsc::channel();
    let (wait, saw) = (Mutex::new(wait), Mutex::new(saw));
    let server = Server::start(move |socket| {
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), delta("resp_1", "Hi"), delta("resp_1", " there")]);
        if wait.lock().unwrap().recv().is_ok() {
            say(socket, &[done("resp_1", "completed", serde_json::Value::Null)]);
        }
        saw.lock().unwrap().send(closed(socket)).unwrap();
    });
    (server, go, seen)
}

#[test]
fn client_that_leaves_aborts_its_answer() {
    let (server, _go, _) = pausing();
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create"}"#);
    for _ in 0..3 {
        super::receive(&mut client);
    }
    client.get_ref().socket().shutdown(Shutdown::Both).unwrap();
    drop(client);
    drop(_go);
    let record = record(&proxy);
    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!((record.tokens.output_provenance, record.tokens.output()), (Provenance::Frames, 2));
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
}

#[test]
fn client_that_closes_aborts_its_answer() {
    let (server, go, seen) = pausing();
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create"}"#);
    super::receive(&mut client);
    client.close(None).unwrap();
    drop(go);
    // The server closes the connection first, because the client asked for it.
    while client.read().is_ok() {}
    assert_eq!(seen.recv().unwrap(), None);
    assert_eq!(record(&proxy).ending, Ending::ClientAbort);
}

#[test]
fn upstream_that_closes_cuts_its_answers() {
    let server = Server::start(|socket| {
        expect(socket, "response.create");
        expect(socket, "response.create");
        say(socket, &[created("resp_1"), delta("resp_1", "Hi")]);
        socket.get_ref().socket().shutdown(Shutdown::Both).unwrap();
    });
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create"}"#);
    send(&mut client, r#"{"type":"response.create"}"#);
    let (begun, asked) = (record(&proxy), record(&proxy));
    assert_eq!((begun.ending, begun.tokens.output()), (Ending::UpstreamCut, 1));
    assert_eq!((asked.ending, asked.tokens.output_provenance), (Ending::UpstreamCut, Provenance::None));
    assert_eq!(closed(&mut client), None);
}

#[test]
#[ignore = "waits for seconds"]
fn client_that_stays_after_the_upstream_loses_its_connection() {
    let server = Server::start(|socket| socket.get_ref().socket().shutdown(Shutdown::Write).unwrap());
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    assert!(client.read().is_err(), "the upstream's end reaches the client");
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
    drop(client);
}

#[test]
#[ignore = "waits for seconds"]
fn closing_client_is_noticed_while_upstream_reads_nothing() {
    if Side::Clients.excludes("it writes to the socket itself") {
        return;
    }
    let (ended, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let server = Server::start(move |_| {
        // Ends with the test.
        let _ = wait.lock().unwrap().recv();
    });
    // With TCP, a close arrives after all bytes before it, which nothing reads here.
    let path = std::env::temp_dir().join(format!("tokenmeter-closes-{}.sock", std::process::id()));
    let address = ListenAddress::Unix { path: path.as_path().into(), mode: 0o600 };
    let proxy = Proxy::with(server.address, |plan| plan.upstreams[0].listen[0].address = address);
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let handshake = format!(
        "GET {REALTIME} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    client.write_all(handshake.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    // A message of a terabyte begins.
    client.write_all(&[0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]).unwrap();
    while client.write_all(&[0; 1 << 16]).is_ok() {}
    assert_eq!(proxy.running.in_flight(), 1);
    client.shutdown(Shutdown::Write).unwrap();
    eventually("the tunnel ends", || proxy.running.in_flight() == 0);
    drop(ended);
}

#[test]
fn drain_closes_a_session_after_its_answer() {
    let (server, go, seen) = pausing();
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create"}"#);
    super::receive(&mut client);
    proxy.running.drain();
    eventually("the listener closes", || std::net::TcpStream::connect(proxy.address()).is_err());
    go.send(()).unwrap();
    until(&mut client, "response.done");
    assert_eq!(closed(&mut client), Some((1001, String::new())));
    assert_eq!(seen.recv().unwrap(), Some((1001, String::new())));
    assert_eq!(record(&proxy).ending, Ending::Complete);
    proxy.running.join();
    assert_eq!(proxy.running.in_flight(), 0);
}

#[test]
fn drain_closes_an_idle_session_at_once() {
    let server = answering();
    let proxy = Proxy::new(server.address);
    let mut client = connect(&proxy, REALTIME, &[]);
    until(&mut client, "session.created");
    proxy.running.drain();
    assert_eq!(closed(&mut client), Some((1001, String::new())));
    proxy.running.join();
}

#[test]
fn grace_that_ends_cuts_the_answer() {
    let (server, _go, _) = pausing();
    let proxy = Proxy::with(server.address, |plan| plan.drain_grace = Duration::from_millis(50));
    let mut client = connect(&proxy, REALTIME, &[]);
    send(&mut client, r#"{"type":"response.create"}"#);
    super::receive(&mut client);
    proxy.running.drain();
    proxy.running.join();
    assert_eq!(record(&proxy).ending, Ending::ProxyError);
}
