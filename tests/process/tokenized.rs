//! A server without token counts: without a tokenizer a stream is estimated by frames and marked as such; with one,
//! its text is counted in every JSON spelling, and not stored.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use crate::proxy::Proxy;

/// The answer, as the strings in its frames.
const PIECES: [&str; 6] =
    ["Tell me ", r#"\"about\""#, r" the\u00e9 \ud83d\ude00", "\\n", "world", " tookSay"];

/// Their text.
const TEXT: &str = "Tell me \"about\" the\u{e9} \u{1f600}\nworld tookSay";

fn tokenizer() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tokenizer/tests/tiny").display().to_string()
}

/// Answers every request with the same stream and no usage.
fn silent_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(connection));
        }
    });
    address
}

fn answer(connection: TcpStream) {
    let mut reader = BufReader::new(connection);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
        if line == "\r\n" {
            break;
        }
    }
    if reader.read_exact(&mut vec![0; length]).is_err() {
        return;
    }
    let mut out = reader.into_inner();
    let frames = PIECES.map(|piece| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}}}}]}}\n\n")
    });
    let finish =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    // In slices of nine bytes, so that most strings are torn.
    let stream = frames.concat() + finish;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let mut sent = out.write_all(head.as_bytes());
    for piece in stream.as_bytes().chunks(9) {
        sent = sent.and_then(|()| out.write_all(piece));
    }
    // A client that left has no effect on this server.
    drop(sent);
}

fn ask(proxy: &Proxy, model: &str) {
    let body = format!(r#"{{"model":"{model}","stream":true,"messages":[]}}"#);
    let mut socket = TcpStream::connect(proxy.data).expect("the data port is open");
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it answers");
    assert!(answer.contains("[DONE]"), "{answer}");
}

#[test]
fn tokenizer_counts_what_the_server_does_not() {
    let named = format!("tiny={}", tokenizer());
    let proxy = Proxy::start(silent_server(), &["--tokenizers", &named, "--access-log"]);
    let ended =
        |n: f64| move |page: &crate::meter_page::Page| page.sum("tokenmeter_exchanges_total", &[]) == n;
    let output = |page: &crate::meter_page::Page, provenance: &str| {
        page.sum("tokenmeter_tokens_total", &[("type", "output"), ("provenance", provenance)])
    };

    ask(&proxy, "tiny");
    let page = proxy.page_when("the first has ended", ended(1.0));
    assert_eq!(output(&page, "frames"), PIECES.len() as f64, "the server's behaviour is unknown yet");

    ask(&proxy, "tiny");
    let page = proxy.page_when("the second is counted", ended(2.0));
    let tiny = tokenizer::Tokenizers::load([("tiny".to_owned(), tokenizer().into())].into_iter());
    let truth = tiny.expect("it was committed").count("tiny", TEXT).expect("the tokenizer counts the text");
    assert!(truth != PIECES.len() as u64, "the two counts differ");
    assert_eq!(output(&page, "tokenized"), truth as f64);
    assert_eq!(output(&page, "frames"), PIECES.len() as f64);
    assert_eq!(page.sum("tokenmeter_exchanges_in_flight", &[]), 0.0);
    assert_eq!(page.sum("tokenmeter_dropped_total", &[]), 0.0);

    // A model without a tokenizer keeps its estimate.
    ask(&proxy, "other");
    let page = proxy.page_when("the third has ended", ended(3.0));
    assert_eq!(output(&page, "frames"), 2.0 * PIECES.len() as f64);
    assert!(!proxy.log().contains("tookSay"), "no text in the log");
    assert!(!page.text.contains("tookSay"));
}

#[test]
fn unreadable_tokenizer_prevents_the_start() {
    let told = std::process::Command::new(env!("CARGO_BIN_EXE_tokenmeter"))
        .args([
            "run",
            "--upstream",
            "http://127.0.0.1:9",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ])
        .args(["--tokenizers", "a=/nowhere/a.json,b=/nowhere/b.json"])
        .output()
        .expect("the binary was built");
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("--tokenizers: "), "{told}");
    assert!(told.contains("/nowhere/a.json") && told.contains("/nowhere/b.json"), "{told}");
}
