//! Errors of fetches: they have a cause and no address.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use super::{FETCH, Fetch};

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

/// However long a server of keys sends, or does not, a fetch ends in its time with a reason.
#[test]
#[ignore = "waits for seconds"]
fn hostile_servers_of_keys_end_in_time() {
    const OK: &str = "HTTP/1.1 200 OK\r\n";
    const BODY: &str = "HTTP/1.1 200 OK\r\n\r\n";
    let threads = [
        // What comes first, then for ever, and the pause between two pieces.
        ("an endless body", BODY, "[".repeat(1 << 16), 0),
        (
            "an endless chunked body",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "1\r\n[\r\n".repeat(9_999),
            0,
        ),
        (
            "a body of any length",
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n",
            " ".repeat(1 << 16),
            0,
        ),
        ("an endless head", OK, "x: y\r\n".repeat(9_999), 0),
        ("an endless field", OK, "x".repeat(1 << 16), 0),
        ("hints without an end", "", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(999), 0),
        ("a slow body", BODY, " ".to_owned(), 50),
        ("a slow head", OK, "x".to_owned(), 50),
        ("a slow status", "", "H".to_owned(), 50),
        ("nothing", "", String::new(), 50),
    ]
    .map(|(name, first, piece, pause)| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", server.local_addr().unwrap());
        thread::spawn(move || {
            let mut peer = server.accept().unwrap().0;
            let mut is_open = peer.write_all(first.as_bytes()).is_ok();
            while is_open {
                is_open = peer.write_all(piece.as_bytes()).is_ok();
                thread::sleep(Duration::from_millis(pause));
            }
        });
        thread::spawn(move || {
            let began = Instant::now();
            let error = Fetch::new(false).get(&url).expect_err(name);
            (name, error, began.elapsed())
        })
    });
    for thread in threads {
        let (name, error, took) = thread.join().unwrap();
        assert!(took < FETCH + Duration::from_secs(2), "{name}: {took:?}");
        assert!(error.len() < 200 && !error.contains("127.0.0.1"), "{name}: {error}");
    }
}

/// As where a redirect leads from https to http.
#[test]
fn redirect_from_https_to_http_is_an_error() {
    let error = Fetch::new(true).get("http://127.0.0.1:1/keys?code=hunter2").unwrap_err();
    assert_eq!(error, "it redirects to a URL that is not https");
}
