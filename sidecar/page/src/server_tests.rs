//! The admin listener over real loopback sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Error, Running, start};
use crate::limits::{CONNECTIONS, HEAD_BYTES};
use crate::{AllowedHosts, Model, Readiness, Source, Text, View};

#[derive(Clone, Default)]
struct Fixed {
    unready: Arc<AtomicBool>,
    view: Arc<Mutex<View>>,
}

impl Source for Fixed {
    fn metrics(&self) -> Text {
        Text { content_type: "application/openmetrics-text; version=1.0.0", body: "# EOF\n".to_owned() }
    }

    fn ready(&self) -> Readiness {
        if self.unready.load(Ordering::Relaxed) {
            Readiness::NotReady(vec!["upstream gpu: connection refused".to_owned()])
        } else {
            Readiness::Ready
        }
    }

    fn view(&self) -> View {
        self.view.lock().unwrap().clone()
    }
}

fn serve(source: Fixed) -> Running {
    let hosts = AllowedHosts::new(["meter.example".to_owned()]);
    start(([127, 0, 0, 1], 0).into(), hosts, Box::new(source)).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The whole answer: the connection closes after it.
fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

#[track_caller]
fn assert_status(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
}

#[test]
fn each_path_answers_its_own() {
    let running = serve(Fixed::default());
    let metrics = get(running.address(), "/metrics");
    assert_status(&metrics, 200);
    assert!(metrics.contains("content-type: application/openmetrics-text; version=1.0.0\r\n"));
    assert!(metrics.ends_with("\r\n\r\n# EOF\n"));
    assert!(get(running.address(), "/livez").ends_with("\r\n\r\nok\n"));
    assert!(get(running.address(), "/readyz?verbose").ends_with("\r\n\r\nok\n"));
    assert_status(&get(running.address(), "/favicon.ico"), 404);
    assert_status(&get(running.address(), "//evil.example"), 404);
}

#[test]
fn every_answer_forbids_caching_sniffing_and_loading() {
    let running = serve(Fixed::default());
    for path in ["/", "/metrics", "/livez", "/readyz", "/none"] {
        let answer = get(running.address(), path);
        for field in [
            "cache-control: no-store\r\n",
            "content-security-policy: default-src 'none'; style-src 'unsafe-inline'",
            "x-content-type-options: nosniff\r\n",
        ] {
            assert!(answer.contains(field), "{path}: {answer}");
        }
        assert!(!answer.to_ascii_lowercase().contains("access-control"), "{path}: {answer}");
    }
}

#[test]
fn readiness_follows_the_source_and_gives_reasons() {
    let source = Fixed::default();
    let running = serve(source.clone());
    source.unready.store(true, Ordering::Relaxed);
    let answer = get(running.address(), "/readyz");
    assert_status(&answer, 503);
    assert!(answer.ends_with("\r\n\r\nnot ready\nupstream gpu: connection refused\n"));
    assert_status(&get(running.address(), "/livez"), 200);
    source.unready.store(false, Ordering::Relaxed);
    assert_status(&get(running.address(), "/readyz"), 200);
}

#[test]
fn head_has_the_fields_and_no_body() {
    let running = serve(Fixed::default());
    let answer =
        send(running.address(), "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_status(&answer, 200);
    assert!(answer.contains("content-length: 6\r\n"));
    assert!(answer.ends_with("\r\n\r\n"));
}

#[test]
fn nothing_can_be_changed_and_a_body_is_never_a_request() {
    let running = serve(Fixed::default());
    let smuggled = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{smuggled}",
            smuggled.len()
        );
        let answer = send(running.address(), &request);
        assert_status(&answer, 405);
        assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
}

#[test]
fn a_foreign_name_is_refused_on_every_path() {
    let running = serve(Fixed::default());
    for path in ["/", "/metrics", "/livez", "/readyz"] {
        let request = |host: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = send(running.address(), &request("evil.example:9464"));
        assert_status(&answer, 421);
        assert!(answer.contains("admin_hosts"), "it says what to do: {answer}");
        assert_status(&send(running.address(), &request("meter.example")), 200);
    }
}

#[test]
fn the_live_page_shows_speeds_from_samples() {
    let source = Fixed::default();
    let model = |output_tokens| Model { name: "<llama>".to_owned(), output_tokens, ..Model::default() };
    source.view.lock().unwrap().models = vec![model(0)];
    let running = serve(source.clone());
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut tokens = 0;
    loop {
        tokens += 50_000;
        source.view.lock().unwrap().models = vec![model(tokens)];
        let page = get(running.address(), "/");
        assert!(page.contains("<bdi>&lt;llama&gt;</bdi>"), "{page}");
        if !page.contains("<td>0<td>–<td>–") {
            break;
        }
        assert!(Instant::now() < deadline, "no speed was shown: {page}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let running = serve(Fixed::default());
    let mut stream = connect(running.address());
    let request = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(2 * HEAD_BYTES));
    // The peer may have hung up before all of it was written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert_status(&get(running.address(), "/livez"), 200);
}

#[test]
fn silent_peers_lose_their_slots() {
    let running = serve(Fixed::default());
    let silent: Vec<_> = (0..CONNECTIONS + 8).map(|_| connect(running.address())).collect();
    // All slots are taken; the answer comes when the head timeout gives one back.
    assert_status(&get(running.address(), "/livez"), 200);
    drop(silent);
}

#[test]
fn a_taken_port_is_an_error_that_names_it() {
    let running = serve(Fixed::default());
    let again = start(running.address(), AllowedHosts::default(), Box::new(Fixed::default()));
    let error = again.err().unwrap();
    assert!(matches!(error, Error::Bind { address, .. } if address == running.address()));
    assert!(error.to_string().starts_with(&format!("cannot listen on {}: ", running.address())));
}

#[test]
fn dropping_it_closes_the_listener() {
    let running = serve(Fixed::default());
    let address = running.address();
    drop(running);
    assert!(TcpStream::connect(address).is_err());
}
