//! A stop signal: readiness fails first, new clients are served during the delay, streams finish, and the process
//! exits 0. A second signal exits at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use faults::{Options, Server, Shape};
use simulator::speed::Model;

use crate::meter_page::get;
use crate::proxy::{DEADLINE, Proxy};

pub(crate) fn ask(data: SocketAddr, tokens: u32) -> std::io::Result<String> {
    let body = format!(
        r#"{{"model":"sim","stream":true,"max_tokens":{tokens},"messages":[{{"role":"user","content":"hi"}}]}}"#
    );
    let mut stream = TcpStream::connect(data)?;
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..read]);
        if read == 0 || answer.ends_with(b"0\r\n\r\n") {
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
    }
}

/// Waits until readiness has this status.
pub(crate) fn readiness(admin: SocketAddr, status: &str) {
    let end = Instant::now() + DEADLINE;
    loop {
        let answer = get(admin, "/readyz").expect("the page is served until the end");
        if answer.starts_with(&format!("HTTP/1.1 {status}")) {
            return;
        }
        assert!(Instant::now() < end, "never {status}: {answer}");
    }
}

/// A server of 50 tokens per second.
pub(crate) async fn slow_server() -> faults::Handle {
    let speed = Model { step_base: Duration::from_millis(20), jitter: 0.0, ..Model::default() };
    let options = Options { shape: Shape::Vllm, speed, ..Options::default() };
    Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_loses_no_request() {
    let server = slow_server().await;
    let mut proxy = Proxy::start(server.addr(), &["--drain-delay-ms", "2500", "--drain-grace-ms", "20000"]);
    let (data, admin) = (proxy.data, proxy.admin);
    let long = tokio::task::spawn_blocking(move || ask(data, 120));
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    tokio::task::block_in_place(|| {
        // Ready after the first contact with the upstream.
        readiness(admin, "200");
        proxy.terminate();
        readiness(admin, "503");
        let late = ask(data, 5).expect("a client within the delay is served");
        assert!(late.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{late}");
    });
    let answer = long.await.expect("no panic").expect("the stream was not cut");
    assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
    let status = tokio::task::block_in_place(|| proxy.ended(Duration::from_secs(10)));
    assert!(status.success(), "{status:?}");
    assert!(TcpStream::connect(proxy.listener).is_err(), "the listener is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_signal_exits_at_once() {
    let server = slow_server().await;
    let mut proxy = Proxy::start(server.addr(), &["--drain-delay-ms", "30000"]);
    let data = proxy.data;
    let cut = tokio::task::spawn_blocking(move || ask(data, 4_000));
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    tokio::task::block_in_place(|| {
        readiness(proxy.admin, "200");
        proxy.terminate();
        readiness(proxy.admin, "503");
        proxy.terminate();
        let status = proxy.ended(Duration::from_secs(20));
        assert!(!status.success(), "a cut stream is no success: {status:?}");
    });
    let answer = cut.await.expect("no panic").unwrap_or_default();
    assert!(!answer.ends_with("0\r\n\r\n"), "a cut stream has no last chunk");
}
