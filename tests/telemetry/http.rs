//! Requests over HTTP/1.0, with which no server sends chunks: a status and a body.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The body of a 200; anything else fails the test.
pub(crate) fn get(address: SocketAddr, path: &str, accept: &str) -> String {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
    body(&ask(address, request.as_bytes()), path)
}

/// As [`get`], for a `POST`.
pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> String {
    let length = body.len();
    let request =
        format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}");
    self::body(&ask(address, request.as_bytes()), path)
}

/// The `data` of a successful answer of Prometheus' API.
pub(crate) fn api(address: SocketAddr, path: &str, parameters: &[(&str, &str)]) -> Value {
    let mut asked = path.to_owned();
    for (place, (key, value)) in parameters.iter().enumerate() {
        asked += &format!("{}{}={}", if place == 0 { '?' } else { '&' }, escaped(key), escaped(value));
    }
    let answer: Value = serde_json::from_str(&get(address, &asked, "*/*")).expect("JSON");
    assert_eq!(answer["status"], "success", "{asked}: {answer}");
    answer["data"].clone()
}

fn ask(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    stream.write_all(request).expect("it reads");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("it answers");
    response
}

fn body(response: &[u8], path: &str) -> String {
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).unwrap_or_default();
    assert!(status.starts_with('2'), "{path}: {text}");
    body.to_owned()
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
