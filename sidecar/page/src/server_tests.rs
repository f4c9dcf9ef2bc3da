//! The admin listener over real loopback sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tokio::sync::watch;

use live::{History, Now, Readiness, Scope, Step};
use serde_json::Value;

use super::{Error, Running, start};
use crate::limits::{CONNECTIONS, HEAD_MAX_BYTES, MAX_CONCURRENT_SCRAPES, MAX_STREAMS, MAX_WAITERS};
use crate::{AllowedHosts, Cached, Content, Drained, NoAccess, NoDrain, Source};

#[path = "api_tests.rs"]
mod api;

#[derive(Clone)]
struct Fixed {
    revoked: Arc<AtomicBool>,
    unready: Arc<AtomicBool>,
    /// The names of models.
    models: Arc<Mutex<Vec<String>>>,
    samples: Arc<AtomicUsize>,
    /// The token that numbers need.
    token: Option<&'static str>,
    has_ledger: bool,
    evicted: Arc<AtomicUsize>,
    /// Pages are not rendered while it is locked.
    gate: Option<Arc<Mutex<()>>>,
    drained: watch::Sender<bool>,
}

impl Default for Fixed {
    fn default() -> Self {
        Self {
            revoked: Arc::default(),
            unready: Arc::default(),
            models: Arc::default(),
            samples: Arc::default(),
            token: None,
            has_ledger: false,
            evicted: Arc::default(),
            gate: None,
            drained: watch::channel(false).0,
        }
    }
}

impl Source for Fixed {
    fn metrics(&self, accept: &str) -> Content {
        if let Some(gate) = &self.gate {
            let gate = Arc::clone(gate);
            let write = move |out: &mut dyn Write| {
                drop(gate.lock().unwrap());
                out.write_all(b"# EOF\n")
            };
            return Content { content_type: "text/plain", write: Box::new(write) };
        }
        let page = match accept {
            "panic" => {
                return Content { content_type: "text/plain", write: Box::new(|_| panic!("by the test")) };
            }
            "large" => "tokenmeter_of_something{and=\"a label\"} 1\n".repeat(100_000),
            "one,two" => "both fields\n".to_owned(),
            _ => "# EOF\n".to_owned(),
        };
        Content {
            content_type: "application/openmetrics-text; version=1.0.0",
            write: Box::new(move |out| out.write_all(page.as_bytes())),
        }
    }

    fn ready(&self) -> Readiness {
        if self.unready.load(Ordering::Relaxed) {
            Readiness::NotReady(vec!["upstream gpu: connection refused".to_owned()])
        } else {
            Readiness::Ready
        }
    }

    fn sample(&mut self) -> Now {
        let samples = self.samples.fetch_add(1, Ordering::Relaxed) as u64;
        let models = self.models.lock().unwrap();
        let models = models.iter().map(|name| Scope { name: name.clone(), ..Scope::default() });
        Now { at_unix_ms: samples, models: models.collect(), ..Now::default() }
    }

    fn history(&self, scope: &str, step: Step) -> Option<History> {
        ["all", "model:a/b c"].contains(&scope).then(|| History {
            scope: scope.to_owned(),
            step_seconds: step.seconds(),
            ..History::default()
        })
    }

    fn spend(&self) -> Option<Content> {
        let failing = Cached::new(Duration::ZERO, || Err(std::io::Error::other("no \"database\"")));
        self.has_ledger.then(|| failing.content())
    }

    fn access(&self, token: Option<&str>) -> Result<(), NoAccess> {
        if self.revoked.load(Ordering::Relaxed) {
            return Err(NoAccess::Token);
        }
        match (self.token, token) {
            (Some("unreadable"), _) => Err(NoAccess::Unreadable("the token cannot be read".to_owned())),
            (Some(right), given) if given != Some(right) => Err(NoAccess::Token),
            _ => Ok(()),
        }
    }

    fn drain(&self, token: Option<&str>) -> Result<(), NoDrain> {
        match token {
            Some("right") => Ok(()),
            Some("none") => Err(NoDrain::Off("no token is configured".to_owned())),
            Some("unreadable") => Err(NoDrain::Unreadable("the token cannot be read".to_owned())),
            _ => Err(NoDrain::Token),
        }
    }

    fn drained(&self) -> Option<Drained> {
        let mut drained = self.drained.subscribe();
        Some(Box::pin(async move {
            drained.wait_for(|drained| *drained).await.unwrap();
        }))
    }

    fn evicted(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }
}

fn serve(source: Fixed) -> Running {
    let hosts = AllowedHosts::new(["meter.example".to_owned()]);
    start(SocketAddr::from(([127, 0, 0, 1], 0)).into(), hosts, CONNECTIONS, Box::new(source)).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends a request and returns the whole response, after which the connection closes.
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

/// Every path that answers GET at once.
const PATHS: [&str; 9] = [
    "/",
    "/assets/app.js",
    "/assets/app.css",
    "/assets/icon.svg",
    "/api/now",
    "/api/history",
    "/metrics",
    "/livez",
    "/readyz",
];

#[test]
fn each_path_has_its_response() {
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
fn every_response_has_common_fields() {
    let running = serve(Fixed::default());
    for path in ["/", "/assets/app.js", "/api/now", "/api/none", "/metrics", "/livez", "/readyz", "/none"] {
        let answer = get(running.address(), path);
        let is_file = path == "/" || path.starts_with("/assets/");
        for field in [
            if is_file { "cache-control: no-cache\r\n" } else { "cache-control: no-store\r\n" },
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
             connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
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
fn page_follows_accept_and_accept_encoding() {
    let running = serve(Fixed::default());
    let ask = |fields: &str| {
        let mut stream = connect(running.address());
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let body = answer.split_off(end);
        (String::from_utf8(answer).unwrap(), body)
    };
    assert_eq!(ask("Accept: one\r\nAccept: two\r\n").1, b"both fields\n");
    let (head, plain) = ask("Accept: large\r\n");
    assert!(
        head.contains("vary: accept, accept-encoding\r\n") && !head.contains("content-encoding"),
        "{head}"
    );
    assert!(head.contains(&format!("content-length: {}\r\n", plain.len())), "{head}");
    assert_eq!(plain.len(), 4_100_000);
    let (head, packed) = ask("Accept: large\r\nAccept-Encoding: gzip\r\n");
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    assert!(head.contains("vary: accept, accept-encoding\r\n"), "{head}");
    assert!(packed.len() < 100_000, "{} B", packed.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain, "the same page");
    assert!(ask("Accept: panic\r\n").0.starts_with("HTTP/1.1 500 "));
    assert_eq!(ask("").1, b"# EOF\n", "the next page is rendered");
}

#[test]
fn probes_are_answered_during_rendering() {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let running = serve(Fixed { gate: Some(Arc::clone(&gate)), ..Fixed::default() });
    let address = running.address();
    let ask = || std::thread::spawn(move || get(address, "/metrics"));
    let asked: Vec<_> = (0..MAX_CONCURRENT_SCRAPES + 2).map(|_| ask()).collect();
    // The last two exceed the maximum wait; meanwhile the thread answers.
    let busy =
        |answers: &[std::thread::JoinHandle<String>]| answers.iter().filter(|one| one.is_finished()).count();
    while busy(&asked) < 2 {
        assert_status(&get(address, "/livez"), 200);
    }
    drop(closed);
    let answers: Vec<_> = asked.into_iter().map(|one| one.join().unwrap()).collect();
    let refused: Vec<_> = answers.iter().filter(|one| one.starts_with("HTTP/1.1 503 ")).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|one| one.contains("retry-after: 1\r\n")), "{refused:?}");
    assert_eq!(answers.iter().filter(|one| one.ends_with("\r\n\r\n# EOF\n")).count(), MAX_CONCURRENT_SCRAPES);
}

#[test]
fn other_methods_are_rejected_and_bodies_ignored() {
    let running = serve(Fixed::default());
    let smuggled = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let methods = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
    for (method, path) in methods.into_iter().flat_map(|method| PATHS.map(|path| (method, path))) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{smuggled}",
            smuggled.len()
        );
        let answer = send(running.address(), &request);
        assert_status(&answer, 405);
        assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
}

#[test]
fn foreign_host_is_rejected_on_every_path() {
    let running = serve(Fixed::default());
    for path in PATHS {
        let request = |host: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = send(running.address(), &request("evil.example:9464"));
        assert_status(&answer, 421);
        assert!(answer.contains("admin_hosts"), "the remedy is missing: {answer}");
        assert_status(&send(running.address(), &request("meter.example")), 200);
    }
}

#[test]
fn too_long_head_is_rejected() {
    let running = serve(Fixed::default());
    let mut stream = connect(running.address());
    let request = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(2 * HEAD_MAX_BYTES));
    // The server may close the connection before the whole head is written.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    assert_status(&get(running.address(), "/livez"), 200);
}

/// Connects from another loopback address.
fn connect_from(last: u8, address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn probe(mut stream: TcpStream) -> String {
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn probes_are_answered_among_silent_connections() {
    let source = Fixed::default();
    let running = serve(source.clone());
    let silent: Vec<_> = (0..800)
        .map(|n| {
            let stream = connect(running.address());
            if n % 100 == 0 {
                assert_status(&probe(connect_from(2, running.address())), 200);
                assert_status(&get(running.address(), "/livez"), 200);
            }
            stream
        })
        .collect();
    assert_status(&probe(connect_from(2, running.address())), 200);
    assert!(source.evicted.load(Ordering::Relaxed) > 0, "it is counted");
    drop(silent);
}

#[test]
fn probes_are_answered_among_torn_heads() {
    let running = serve(Fixed::default());
    let torn: Vec<_> = (0..3 * CONNECTIONS)
        .map(|_| {
            let mut stream = connect(running.address());
            stream.write_all(b"G").unwrap();
            stream
        })
        .collect();
    assert_status(&probe(connect_from(2, running.address())), 200);
    assert_status(&get(running.address(), "/livez"), 200);
    drop(torn);
}

/// One peer requests large pages and reads none of them.
#[test]
fn probes_are_answered_among_unread_pages() {
    let running = serve(Fixed::default());
    let unread: Vec<_> = (0..2 * CONNECTIONS)
        .map(|_| {
            let mut stream = connect(running.address());
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: large\r\n\r\n").unwrap();
            stream
        })
        .collect();
    for _ in 0..4 {
        assert_status(&probe(connect_from(2, running.address())), 200);
    }
    drop(unread);
}

#[test]
fn silent_connection_is_closed_after_a_second() {
    let running = serve(Fixed::default());
    let mut silent = connect(running.address());
    assert_eq!(silent.read(&mut [0; 16]).unwrap(), 0);
}

#[test]
fn drain_needs_the_token() {
    let running = serve(Fixed::default());
    let order = |method: &str, authorization: &str| {
        send(
            running.address(),
            &format!(
                "{method} /drain HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Length: 0\r\n\r\n"
            ),
        )
    };
    for _ in 0..2 {
        assert_status(&order("POST", "Authorization: bearer  right\r\n"), 202);
    }
    for wrong in
        ["", "Authorization: right\r\n", "Authorization: Basic right\r\n", "Authorization: Bearer x\r\n"]
    {
        let answer = order("POST", wrong);
        assert_status(&answer, 401);
        assert!(
            answer.contains("www-authenticate: Bearer\r\n") && answer.contains("drain_token_file"),
            "{answer}"
        );
    }
    assert_status(&order("POST", "Authorization: Bearer none\r\n"), 403);
    assert_status(&order("POST", "Authorization: Bearer unreadable\r\n"), 500);
    let answer = order("GET", "Authorization: Bearer right\r\n");
    assert_status(&answer, 405);
    assert!(answer.contains("allow: POST\r\n"), "{answer}");
}

/// Sends a request for the end of the drain.
fn wait_for_drain(method: &str, mut stream: TcpStream) -> TcpStream {
    write!(stream, "{method} /drained HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

/// Returns all bytes until the connection is closed.
fn rest(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn drained_is_answered_at_the_end_of_the_drain() {
    let source = Fixed::default();
    let running = serve(source.clone());
    let mut early = ["GET", "HEAD"].map(|method| wait_for_drain(method, connect(running.address())));
    for stream in &mut early {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(stream.read(&mut [0; 16]).is_err(), "no answer before the end");
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    source.drained.send_replace(true);
    // A process that ends after its drain answers first.
    drop(running);
    let [whole, head] = early.map(rest);
    assert_status(&whole, 200);
    assert!(whole.ends_with("\r\n\r\ndrained\n"), "{whole}");
    assert_status(&head, 200);
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    let running = serve(source);
    assert_status(&get(running.address(), "/drained"), 200);
    let answer =
        send(running.address(), "POST /drained HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_status(&answer, 405);
}

#[test]
fn waiters_are_bounded_and_one_peer_displaces_only_itself() {
    let source = Fixed::default();
    let running = serve(source.clone());
    let other = wait_for_drain("GET", connect_from(2, running.address()));
    let mut crowd: Vec<_> =
        (0..3 * MAX_WAITERS).map(|_| wait_for_drain("GET", connect(running.address()))).collect();
    // Each but the last few is closed without an answer.
    let kept = crowd.split_off(crowd.len() - (MAX_WAITERS - 1));
    for stream in crowd {
        assert_eq!(rest(stream), "");
    }
    assert_status(&get(running.address(), "/livez"), 200);
    source.drained.send_replace(true);
    for stream in kept.into_iter().chain([other]) {
        assert_status(&rest(stream), 200);
    }
}

#[test]
fn port_in_use_is_an_error_with_address() {
    let running = serve(Fixed::default());
    let again =
        start(running.address().into(), AllowedHosts::default(), CONNECTIONS, Box::new(Fixed::default()));
    let error = again.err().unwrap();
    assert!(matches!(error, Error::Bind { address, .. } if address == running.address()));
    assert!(error.to_string().starts_with(&format!("cannot listen on {}: ", running.address())));
}

#[test]
fn drop_closes_listener() {
    let running = serve(Fixed::default());
    let address = running.address();
    drop(running);
    assert!(TcpStream::connect(address).is_err());
}
