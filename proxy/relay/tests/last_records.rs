//! The last records of a TLS session reach a client that does not read for a while: its socket takes few bytes, so that they
//! wait in the session.

use std::io;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::runtime::LocalOptions;
use tokio::task::spawn_local;
use tokio_rustls::TlsConnector;

use crate::support::{DEADLINE, late_reader, tls};

/// Sends these requests to a proxy whose server answers with `len` bytes. The client reads once the proxy can do nothing
/// without it, and this time has passed. Returns what it reads: `whole` bytes, or to the end of its session.
fn received_late(
    requests: &str,
    len: usize,
    pause: Duration,
    whole: Option<usize>,
) -> (String, io::Result<()>) {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build_local(LocalOptions::default()).unwrap();
    let thread = std::thread::current().id();
    let path = std::env::temp_dir().join(format!("records-{}-{thread:?}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let received = runtime.block_on(async {
        let listener = UnixListener::bind(&path).unwrap();
        spawn_local(answer_all(listener, answer(len, "")));
        let client = late_reader::connect(&path, Some(tls::server().load_full()));
        let name = ServerName::try_from(tls::NAME).unwrap();
        let mut client = TlsConnector::from(tls::client(&["http/1.1"])).connect(name, client).await.unwrap();
        client.write_all(requests.as_bytes()).await.unwrap();
        client.flush().await.unwrap();
        late_reader::wait().await;
        tokio::time::advance(pause).await;
        let mut received = vec![0; whole.unwrap_or(0)];
        let reading = async {
            match whole {
                Some(_) => client.read_exact(&mut received).await,
                None => client.read_to_end(&mut received).await,
            }
        };
        let end = tokio::time::timeout(DEADLINE, reading).await.expect("the rest is not sent");
        (String::from_utf8(received).unwrap(), end.map(drop))
    });
    let _ = std::fs::remove_file(&path);
    received
}

/// A server that gives the same answer to each read of a request.
async fn answer_all(listener: UnixListener, answer: String) {
    while let Ok((mut server, _)) = listener.accept().await {
        while server.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
            server.write_all(answer.as_bytes()).await.unwrap();
        }
    }
}

fn answer(len: usize, fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n{fields}\r\n{}", "x".repeat(len))
}

#[test]
fn answer_is_whole_before_its_client_sends_more() {
    for len in (0..16_000).step_by(500) {
        let expected = answer(len, "");
        let request = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
        let (received, end) = received_late(request, len, Duration::ZERO, Some(expected.len()));
        assert!(end.is_ok() && received == expected, "{len} {end:?}");
    }
}

#[test]
fn last_answer_and_the_end_of_the_session_arrive() {
    for len in (0..16_000).step_by(100) {
        let request = "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let (received, end) = received_late(request, len, Duration::ZERO, None);
        assert!(end.is_ok() && received == answer(len, "connection: close\r\n"), "{len} {end:?}");
    }
}

/// The proxy waits for a limited time for the client to take the end, and without a limit to take an answer.
#[test]
fn answers_arrive_after_any_time() {
    for len in (0..16_000).step_by(100) {
        let requests = "GET /x HTTP/1.1\r\nHost: h\r\n\r\nnot a request\r\n\r\n";
        let (received, _) = received_late(requests, len, 2 * relay::limits::LINGER, None);
        let (first, second) = received.split_at(received.len().min(answer(len, "").len()));
        assert!(first == answer(len, ""), "{len}");
        assert!(second.starts_with("HTTP/1.1 400 ") && second.ends_with("}}"), "{len}: {second}");
    }
}
