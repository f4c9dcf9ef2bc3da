//! One exchange through the whole process: the client gets the upstream's bytes, the counters rise, and the access
//! log has a line without content.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::child::{PATIENCE, Running, get, get_until};

const ANSWER: &str = "data: {\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"swordfish\"},\"finish_reason\":null}]}\n\ndata: {\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"model\":\"tiny\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18}}\n\ndata: [DONE]\n\n";

/// A server that answers every request with [`ANSWER`] and closes the connection.
pub(crate) fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(ANSWER.as_bytes()).unwrap();
}

/// Returns the answer to a chat request with further header `fields` (whole lines).
pub(crate) fn ask(running: &Running, fields: &str, body: &str) -> String {
    let mut client = TcpStream::connect(running.data).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        client,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer sk-canary\r\n{fields}\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        running.data,
        body.len()
    )
    .unwrap();
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    got
}

#[test]
fn exchange_is_counted_and_logged_without_content() {
    let upstream = server();
    let running = Running::start(upstream, &["--access-log", "--log-level", "warn", "--kind", "vllm"]);
    let body =
        "{\"model\":\"tiny\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"open sesame\"}]}";
    let got = ask(&running, "", body);
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    assert!(got.contains("swordfish") && got.contains("[DONE]"), "{got}");

    let line = running.line("\"target\":\"access\"");
    for part in [
        "\"model\":\"tiny\"",
        "\"dialect\":\"openai_chat\"",
        "\"ending\":\"complete\"",
        "\"status\":200",
        "\"input_tokens\":11",
        "\"output_tokens\":7",
        "\"output_provenance\":\"reported\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    let (_, metrics) = get_until(running.admin, "/metrics", |_, metrics| metrics.contains("type=\"output\""));
    assert!(
        metrics.contains("tokenmeter_tokens_total{model=\"tiny\",type=\"output\",provenance=\"reported\"} 7"),
        "{metrics}"
    );
    let (_, page) = get_until(running.admin, "/api/now", |_, page| page.contains(r#""exchanges":1,"#));
    assert!(page.contains(r#""name":"tiny""#), "{page}");
    assert!(page.contains(r#""output_provenance":{"reported":7}"#), "{page}");
    for secret in ["swordfish", "sesame", "canary"] {
        for shown in [&line, &metrics, &page] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

#[test]
fn default_has_no_access_log() {
    let upstream = server();
    let running = Running::start(upstream, &["--log-level", "trace"]);
    let (status, _) = get(running.data, "/v1/models");
    assert_eq!(status, 200);
    get_until(running.admin, "/readyz", |status, _| status == 200);
    let lines = running.lines();
    assert!(!lines.iter().any(|line| line.contains("\"target\":\"access\"")), "{lines:#?}");
}
