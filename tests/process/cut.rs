//! A server that crashes, fails or stalls within a response: the client sees the same as without the proxy, the
//! metrics page has the cause, and the proxy survives.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use chance::Side;
use faults::{Options, Server, Shape};

use crate::proxy::Proxy;

/// One streamed chat request with a fault; all bytes until the connection closes.
fn ask(data: SocketAddr, fault: &str) -> Vec<u8> {
    let body = r#"{"model":"sim","stream":true,"max_tokens":20,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut stream = TcpStream::connect(data).expect("the data port is open");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout can be set");
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\nx-simulate: {fault}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut answer = Vec::new();
    // A reset is one sign of a cut answer.
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_has_its_ending() {
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), Options::instant(Shape::Vllm))
        .await
        .expect("it listens");
    let mut proxy = Proxy::start(server.addr(), &[]);
    for (fault, ending, whole) in [
        ("cut-after=7", "upstream_cut", false),
        ("reset-after=7", "upstream_cut", false),
        ("end-after=7", "upstream_cut", true),
        ("error-in-band-after=5", "error_in_band", true),
        ("error-status=503", "error_status", true),
        ("ping-every=1s", "length", true),
    ] {
        let data = proxy.data;
        let answer = tokio::task::spawn_blocking(move || ask(data, fault)).await.expect("no panic");
        let text = String::from_utf8_lossy(&answer);
        let ended = text.ends_with("0\r\n\r\n") || !text.contains("chunked");
        assert_eq!(ended, whole, "{fault}: {text}");
        proxy.page_when(fault, |page| page.sum("tokenmeter_exchanges_total", &[("ending", ending)]) >= 1.0);
        assert!(proxy.is_alive());
    }
    let page = proxy.page();
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[("ending", "upstream_cut")]), 3.0);
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[]), 6.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_upstream_is_a_502_in_its_dialect() {
    if Side::Upstreams.excludes("the server in front accepts connections to a server that is down") {
        return;
    }
    let server = Server::bind("127.0.0.1:0".parse().expect("an address"), Options::instant(Shape::Vllm))
        .await
        .expect("it listens");
    let proxy = Proxy::start(server.addr(), &[]);
    server.shutdown().await;
    let data = proxy.data;
    let answer = tokio::task::spawn_blocking(move || ask(data, "close")).await.expect("no panic");
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 502"), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert!(body["error"]["message"].as_str().is_some_and(|m| !m.is_empty()), "{body}");
    proxy.page_when("counted", |page| {
        page.sum("tokenmeter_exchanges_total", &[("ending", "proxy_error")]) == 1.0
            && page.sum("tokenmeter_refused_total", &[("reason", "upstream_unreachable")]) == 1.0
    });
}
