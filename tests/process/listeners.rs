//! Unix sockets, and the fields that tell the server who sent a request.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::proxy::Proxy;
use crate::scripted;

const REQUEST: &str =
    "GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n";

/// A server that keeps the heads of its requests.
fn upstream() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let address = scripted::server(move |head| {
        kept.lock().expect("no panic").push(head.to_owned());
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_vec()
    });
    (address, heads)
}

fn ask(mut client: impl Read + Write) -> String {
    client.write_all(REQUEST.as_bytes()).expect("it reads");
    let mut response = String::new();
    client.read_to_string(&mut response).expect("it ends");
    response
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tokenmeter-{name}-{}.sock", std::process::id()))
}

#[test]
fn unix_socket_is_served_and_removed() {
    let (upstream, heads) = upstream();
    let path = path("served");
    // A process that was killed left its file.
    drop(UnixListener::bind(&path).expect("a socket"));
    let listen = format!("unix:{}", path.display());
    let options = ["--listen", &listen, "--listen-mode", "0600", "--workers", "2", "--drain-delay-ms", "0"];
    let mut proxy = Proxy::start(upstream, &options);
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for _ in 0..20 {
        let response = ask(UnixStream::connect(&path).expect("it listens"));
        assert!(response.ends_with("\r\n\r\nhello"), "{response}");
    }
    let kept = heads.lock().expect("no panic").clone();
    assert!(kept.iter().all(|head| head.contains("X-Forwarded-For: 203.0.113.9\r\n")), "{kept:?}");
    proxy.terminate();
    proxy.ended(Duration::from_secs(20));
    assert!(!path.exists(), "removed at the end");
}

#[test]
fn used_unix_socket_is_not_replaced() {
    let path = path("used");
    let used = UnixListener::bind(&path).expect("a socket");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tokenmeter"))
        .args(["run", "--upstream", "http://127.0.0.1:1", "--admin", "127.0.0.1:0"])
        .args(["--listen", &format!("unix:{}", path.display())])
        .output()
        .expect("the binary was built");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("choose another path with --listen"), "{error}");
    drop(used);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn server_learns_the_client_if_asked() {
    let (upstream, heads) = upstream();
    let path = path("forwarded");
    let listen = format!("unix:{}", path.display());
    let _proxy = Proxy::start(upstream, &["--listen", &listen, "--forwarded", "append"]);
    ask(UnixStream::connect(&path).expect("it listens"));
    let head = heads.lock().expect("no panic").last().expect("a request").to_ascii_lowercase();
    for field in [
        "x-forwarded-for: 127.0.0.1\r\n",
        "x-forwarded-proto: http\r\n",
        "x-forwarded-host: h\r\n",
        "forwarded: for=127.0.0.1;proto=http;host=\"h\"\r\n",
    ] {
        assert!(head.contains(field), "no {field:?} in {head}");
    }
}
