//! What is said of a fetch that failed: enough to mend it, and no address.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::Fetch;

/// What is said where the server answers this, as often as it is asked.
fn told(answer: &'static str) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys?code=hunter2", server.local_addr().unwrap());
    thread::spawn(move || {
        for peer in server.incoming() {
            let mut peer = peer.unwrap();
            let _ = peer.read(&mut [0; 4096]);
            let _ = peer.write_all(answer.as_bytes());
        }
    });
    Fetch::new(false).get(&url).expect_err(answer)
}

#[test]
fn failures_are_told_in_words_without_an_address() {
    const TO_ITSELF: &str = "HTTP/1.1 302 Found\r\nlocation: /keys?code=hunter2\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    for (answer, expected) in [
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", "it answered 503"),
        (TO_ITSELF, "it redirects, and by http no redirect is followed"),
        ("hunter2\r\n\r\n", "its answer is not HTTP"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "it did not answer: unexpected end of file"),
    ] {
        assert_eq!(told(answer), expected);
    }
}

/// Keys by http are keys of this machine: a redirect to another place is not fetched, and its body is no
/// set of keys.
#[test]
fn http_redirect_reaches_no_other_server() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let location = format!("http://{}/keys", elsewhere.local_addr().unwrap());
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect"] {
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{{\"keys\":[]}}"
        );
        assert_eq!(told(answer.leak()), "it redirects, and by http no redirect is followed");
        let refused = elsewhere.accept().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock, "{status}");
    }
}

/// As where a redirect leads from https to http.
#[test]
fn a_place_that_is_not_https_is_told_without_its_query() {
    let told = Fetch::new(true).get("http://127.0.0.1:1/keys?code=hunter2").unwrap_err();
    assert_eq!(told, "it redirects to a place that is not https");
}
