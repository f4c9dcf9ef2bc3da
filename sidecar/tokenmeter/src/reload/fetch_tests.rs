//! Errors of fetches: they have a cause and no address.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::Fetch;

/// Returns the error of a fetch from a server with this response.
fn fetch_error(answer: &'static str) -> String {
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
fn errors_have_no_address() {
    const TO_ITSELF: &str = "HTTP/1.1 302 Found\r\nlocation: /keys?code=hunter2\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    for (answer, expected) in [
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", "it responded 503"),
        (TO_ITSELF, "it redirects, which is not followed over http"),
        ("hunter2\r\n\r\n", "its response is not HTTP"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "it did not respond: unexpected end of file"),
    ] {
        assert_eq!(fetch_error(answer), expected);
    }
}

/// http is for keys of this machine: a redirect is not followed, and its body is no JWKS.
#[test]
fn http_redirect_reaches_no_other_server() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let location = format!("http://{}/keys", elsewhere.local_addr().unwrap());
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect"] {
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{{\"keys\":[]}}"
        );
        assert_eq!(fetch_error(answer.leak()), "it redirects, which is not followed over http");
        let refused = elsewhere.accept().unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock, "{status}");
    }
}

/// As where a redirect leads from https to http.
#[test]
fn redirect_from_https_to_http_is_an_error() {
    let error = Fetch::new(true).get("http://127.0.0.1:1/keys?code=hunter2").unwrap_err();
    assert_eq!(error, "it redirects to a URL that is not https");
}
