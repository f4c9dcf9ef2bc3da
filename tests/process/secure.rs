//! An upstream with TLS, and one on a Unix socket, end to end: streams, cancellation, drain, the server's own metrics,
//! and a certificate that is not accepted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use faults::{Handle, Options, Server, Shape};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{AbortHandle, block_in_place};
use tokio_rustls::TlsAcceptor;

use crate::drain::{ask, readiness, slow_server};
use crate::meter_page::get;
use crate::proxy::{DEADLINE, Proxy};

/// The end of a connection in front of a simulated server: TLS, or a Unix socket.
struct Front {
    url: String,
    /// The certificate, which is its own root.
    ca: PathBuf,
    folder: PathBuf,
    task: AbortHandle,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
        // A folder that stays has no effect on another test.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tokenmeter-secure-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Copies bytes both ways; an error of one side ends the other, as in a server whose client is gone.
async fn carry(mut stream: impl AsyncRead + AsyncWrite + Unpin, server: SocketAddr) {
    if let Ok(mut far) = tokio::net::TcpStream::connect(server).await {
        let _ = copy_bidirectional(&mut stream, &mut far).await;
    }
}

/// Starts TLS for `localhost` in front of a server. `year`: the end of the certificate.
async fn tls(name: &str, server: SocketAddr, year: i32) -> Front {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(year, 10, 1);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let folder = folder(name);
    let ca = folder.join("ca.pem");
    std::fs::write(&ca, certificate.pem()).expect("a file can be written");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has suites")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .expect("a valid identity");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    carry(stream, server).await;
                }
            });
        }
    });
    Front { url: format!("https://localhost:{port}"), ca, folder, task: task.abort_handle() }
}

fn start(front: &Front, options: &[&str]) -> Proxy {
    let ca = front.ca.display().to_string();
    Proxy::start_for(&front.url, &[&["--upstream-ca", &ca][..], options].concat())
}

async fn instant_server() -> Handle {
    let options = Options::instant(Shape::Vllm);
    Server::bind("127.0.0.1:0".parse().expect("an address"), options).await.expect("it listens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_upstream_is_metered_and_its_page_is_read() {
    let server = instant_server().await;
    let front = tls("metered", server.addr(), 2090).await;
    let proxy = start(&front, &["--kind", "vllm", "--engine-metrics-interval-ms", "1000"]);
    block_in_place(|| {
        readiness(proxy.admin, "200");
        for _ in 0..3 {
            let answer = ask(proxy.data, 7).expect("an answer");
            assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
        }
        let page = proxy.page_when("three exchanges and a reading", |page| {
            page.sum("tokenmeter_exchanges_total", &[]) == 3.0
                && page.sum("tokenmeter_engine_up", &[]) == 1.0
                && page.sum("tokenmeter_upstream_up", &[]) == 1.0
        });
        let output = [("type", "output"), ("provenance", "reported")];
        assert_eq!(page.sum("tokenmeter_tokens_total", &output), 21.0);
        assert_eq!(page.sum("tokenmeter_upstream_tls_verified", &[]), 1.0);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_leaves_cancels_through_tls() {
    let server = slow_server().await;
    let front = tls("cancel", server.addr(), 2090).await;
    let proxy = start(&front, &[]);
    let body =
        r#"{"model":"sim","stream":true,"max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut client = TcpStream::connect(proxy.data).expect("it listens");
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: {}\r\n\r\n", body.len());
    client.write_all((head + body).as_bytes()).expect("it reads");
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    block_in_place(|| client.read_exact(&mut [0; 100]).expect("the stream arrives"));
    drop(client);
    server.until(DEADLINE, |counts| counts.running == 0).await.expect("it is cancelled");
    block_in_place(|| {
        proxy.page_when("the abort", |page| {
            page.sum("tokenmeter_exchanges_total", &[("ending", "client_abort")]) == 1.0
        });
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_finishes_streams_through_tls() {
    let server = slow_server().await;
    let front = tls("drain", server.addr(), 2090).await;
    let mut proxy = start(&front, &["--drain-delay-ms", "0", "--drain-grace-ms", "20000"]);
    let data = proxy.data;
    let long = tokio::task::spawn_blocking(move || ask(data, 60));
    server.until(DEADLINE, |counts| counts.running == 1).await.expect("the stream runs");
    proxy.terminate();
    let answer = long.await.expect("no panic").expect("the stream was not cut");
    assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
    let status = block_in_place(|| proxy.ended(Duration::from_secs(10)));
    assert!(status.success(), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_certificate_is_named_everywhere() {
    let server = instant_server().await;
    let front = tls("expired", server.addr(), 2021).await;
    let proxy = start(&front, &[]);
    let fault = "the certificate of localhost expired on 2021-10-01";
    block_in_place(|| {
        proxy.log_line(fault);
        let ready = get(proxy.admin, "/readyz").expect("the page is served");
        assert!(ready.starts_with("HTTP/1.1 503") && ready.contains(fault), "{ready}");
        let mut client = TcpStream::connect(proxy.data).expect("it listens");
        client
            .write_all(b"GET /v1/models HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains(fault), "{answer}");
        assert!(answer.contains("upstream_tls"), "{answer}");
        let page = proxy.page();
        assert_eq!(page.sum("tokenmeter_upstream_up", &[]), 0.0);
        assert_eq!(page.sum("tokenmeter_refused_total", &[("reason", "upstream_unreachable")]), 1.0);
    });
    assert_eq!(server.counts().generated_tokens, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skipped_verification_is_a_warning_and_a_metric() {
    let server = instant_server().await;
    let front = tls("skipped", server.addr(), 2021).await;
    let proxy = Proxy::start_for(&front.url, &["--upstream-insecure-skip-verify"]);
    block_in_place(|| {
        let answer = ask(proxy.data, 3).expect("an answer");
        assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
        proxy.log_line("is not verified");
        assert_eq!(proxy.page().sum("tokenmeter_upstream_tls_verified", &[]), 0.0);
        assert!(proxy.page().text.contains("tokenmeter_upstream_tls_verified{"));
        // The live page's numbers are made once a second, first before a server is known.
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let now = get(proxy.admin, "/api/now").expect("the page is served");
            if now.contains("\"verified\":false") {
                break;
            }
            assert!(Instant::now() < end, "{now}");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unix_socket_is_an_upstream() {
    let server = instant_server().await;
    let folder = folder("unix");
    let path = folder.join("vllm.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let address = server.addr();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(carry(stream, address));
        }
    });
    let url = format!("unix:{}", path.display());
    let front = Front { url, ca: PathBuf::new(), folder, task: task.abort_handle() };
    let proxy = Proxy::start_for(&front.url, &["--kind", "vllm", "--engine-metrics-interval-ms", "1000"]);
    block_in_place(|| {
        readiness(proxy.admin, "200");
        let answer = ask(proxy.data, 7).expect("an answer");
        assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
        proxy.page_when("a reading", |page| page.sum("tokenmeter_engine_up", &[]) == 1.0);
        proxy.log_line(&format!("-> {}", front.url));
    });
}

/// Starts an HTTP proxy that tunnels to any address; returns its address and the number of its tunnels.
async fn http_proxy() -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let tunnels = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tunnels);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(char::from(byte));
                }
                let Some(port) = head.split([' ', ':']).nth(2).and_then(|port| port.parse::<u16>().ok())
                else {
                    return;
                };
                if stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                    carry(stream, SocketAddr::from(([127, 0, 0, 1], port))).await;
                }
            });
        }
    });
    (address, tunnels)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_in_between_carries_everything() {
    let server = instant_server().await;
    let front = tls("proxied", server.addr(), 2090).await;
    let (address, tunnels) = http_proxy().await;
    let url = format!("http://{address}");
    let proxy =
        start(&front, &["--upstream-proxy", &url, "--kind", "vllm", "--engine-metrics-interval-ms", "1000"]);
    block_in_place(|| {
        readiness(proxy.admin, "200");
        let answer = ask(proxy.data, 7).expect("an answer");
        assert!(answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{answer}");
        proxy.page_when("a reading", |page| page.sum("tokenmeter_engine_up", &[]) == 1.0);
    });
    assert!(tunnels.load(Ordering::Relaxed) >= 3, "a probe, a request and a reading");
}
