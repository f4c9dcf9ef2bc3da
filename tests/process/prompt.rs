//! A prompt of 100 MiB passes without being buffered, in the memory of a few buffers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::proxy::Proxy;

const PROMPT: usize = 100 * 1024 * 1024;
const MOST_GROWTH: u64 = 16 * 1024 * 1024;

/// Reads one request to its end and answers with the length of its body.
fn swallow(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().expect("the proxy connects");
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut left: usize = length.and_then(|n| n.parse().ok()).expect("a length");
    let (mut buffer, total) = (vec![0; 64 * 1024], left);
    while left > 0 {
        let read = stream.read(&mut buffer).expect("a body");
        assert!(read > 0, "the body is cut {left} bytes before its end");
        left -= read;
    }
    let body = format!(
        "{{\"choices\":[{{\"index\":0,\"message\":{{\"content\":\"{total}\"}},\"finish_reason\":\"stop\"}}]}}"
    );
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("the proxy reads");
}

#[test]
fn prompt_of_100_mib_passes_in_16() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = Proxy::start(listener.local_addr().expect("an address"), &[]);
    let done = AtomicBool::new(false);
    let before = proxy.resident();
    let (answer, most) = std::thread::scope(|scope| {
        // The readiness probe connects, too; a connection without a head is not the request.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| swallow(&listener))).is_ok() {
                    break;
                }
            }
        });
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(proxy.resident());
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            most
        });
        let mut stream = TcpStream::connect(proxy.data).expect("the data port is open");
        let (begin, end) = (r#"{"model":"big","messages":[{"role":"user","content":""#, r#""}]}"#);
        let length = begin.len() + PROMPT + end.len();
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: big\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{begin}"
        )
        .expect("it reads");
        let piece = vec![b'x'; 64 * 1024];
        for _ in 0..PROMPT / piece.len() {
            stream.write_all(&piece).expect("it reads on");
        }
        stream.write_all(end.as_bytes()).expect("it reads to the end");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        done.store(true, Ordering::Relaxed);
        (answer, watch.join().expect("no panic"))
    });
    let length = PROMPT + r#"{"model":"big","messages":[{"role":"user","content":""}]}"#.len();
    assert!(answer.contains(&format!("\"content\":\"{length}\"")), "{answer}");
    let growth = most.saturating_sub(before);
    println!("growth during a 100 MiB prompt: {:.1} MiB", growth as f64 / 1_048_576.0);
    assert!(growth < MOST_GROWTH, "grew by {growth} bytes");
    let page = proxy.page_when("counted", |page| page.sum("tokenmeter_exchanges_total", &[]) == 1.0);
    assert_eq!(page.sum("tokenmeter_exchanges_total", &[("model", "big"), ("ending", "complete")]), 1.0);
}
