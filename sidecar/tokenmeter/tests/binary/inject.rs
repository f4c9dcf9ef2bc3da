//! `tokenmeter inject` over TLS: a review gets its patch; certificates and config are replaced while it runs; peers that
//! are slow or send garbage get no pod into trouble.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::child::{PATIENCE, address_after, output, tokenmeter};

const NAME: &str = "tokenmeter-webhook.tokenmeter-system.svc";

const CONFIG: &str = "
container: {name: tokenmeter, image: 'tokenmeter:first'}
native: true
server_port: 8200
grace_seconds: 120
servers:
- {name: vllm, words: [vllm serve], images: [], port_flags: [--port], port: 8000}
";

/// A folder as the kubelet mounts it: files are links into `..data`, which is a link to the folder of a version.
struct Mount {
    path: PathBuf,
    version: usize,
}

impl Mount {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-inject-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for file in ["tls.crt", "tls.key", "injection.yaml"] {
            symlink(Path::new("..data").join(file), path.join(file)).unwrap();
        }
        Self { path, version: 0 }
    }

    /// Replaces all files at once.
    fn write(&mut self, certificate: &str, key: &str, config: &str) {
        self.version += 1;
        let folder = format!("..version-{}", self.version);
        let inner = self.path.join(&folder);
        fs::create_dir(&inner).unwrap();
        for (file, text) in [("tls.crt", certificate), ("tls.key", key), ("injection.yaml", config)] {
            fs::write(inner.join(file), text).unwrap();
        }
        symlink(&folder, self.path.join("..data_tmp")).unwrap();
        fs::rename(self.path.join("..data_tmp"), self.path.join("..data")).unwrap();
    }

    fn file(&self, name: &str) -> String {
        self.path.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A self-signed certificate, and the client that trusts nothing else.
struct Identity {
    certificate: String,
    key: String,
    client: Arc<ClientConfig>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem(), client: Arc::new(client) }
    }

    /// Returns the same client with the certificate of another identity.
    fn presenting(&self, other: &Self) -> Self {
        let chain =
            CertificateDer::pem_slice_iter(other.certificate.as_bytes()).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(other.key.as_bytes()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()).unwrap();
        let client = client.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
        Self { certificate: self.certificate.clone(), key: self.key.clone(), client: Arc::new(client) }
    }
}

/// A running webhook, killed on drop.
struct Webhook {
    child: std::process::Child,
    lines: Mutex<std::sync::mpsc::Receiver<String>>,
    address: SocketAddr,
}

impl Webhook {
    fn start(mount: &Mount) -> Self {
        Self::with(mount, &[])
    }

    fn with(mount: &Mount, more: &[&str]) -> Self {
        let arguments = arguments(mount, "127.0.0.1:0");
        let mut command =
            tokenmeter(&arguments.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            use std::io::BufRead;
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut webhook = Self { child, lines: Mutex::new(lines), address: ([0; 4], 0).into() };
        webhook.address = address_after(&webhook.line("listening on https://"), "listening on https://");
        webhook
    }

    /// Waits for the next line on stderr that contains `part`.
    fn line(&self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.lock().unwrap().recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("no line with {part:?}: {error}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    fn connect(&self, identity: &Identity) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(NAME).unwrap();
        let connection = ClientConnection::new(identity.client.clone(), name).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(stream)
    }

    /// Returns status and body of a request on a new connection.
    fn request(&self, identity: &Identity, head: &str, body: &[u8]) -> std::io::Result<(u16, String)> {
        let mut stream = self.connect(identity)?;
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        // The server may close without a closing alert when it refuses a body.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok((head[9..12].parse().unwrap(), body.to_owned()))
    }

    /// Returns the image of the sidecar in the patch for a pod, or the answer without a patch.
    fn image(&self, identity: &Identity) -> Result<String, Value> {
        let (status, body) = self.request(identity, "POST /", review().to_string().as_bytes()).unwrap();
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        assert_eq!(answer["response"]["uid"], "a-b-c");
        let Some(patch) = answer["response"]["patch"].as_str() else { return Err(answer) };
        let patch: Value = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
        let added =
            patch.as_array().unwrap().iter().find(|step| step["path"] == "/spec/initContainers").unwrap();
        Ok(added["value"][0]["image"].as_str().unwrap().to_owned())
    }

    fn signal(&self, name: &str) {
        let sent =
            std::process::Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn arguments(mount: &Mount, listen: &str) -> Vec<String> {
    let mut arguments = vec!["inject".to_owned(), "--listen".to_owned(), listen.to_owned()];
    for (flag, file) in [("--config", "injection.yaml"), ("--cert", "tls.crt"), ("--key", "tls.key")] {
        arguments.extend([flag.to_owned(), mount.file(file)]);
    }
    arguments
}

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "a-b-c",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": "models",
            "operation": "CREATE",
            "object": {
                "metadata": {"generateName": "vllm-"},
                "spec": {"containers": [{"name": "vllm", "command": ["vllm", "serve", "qwen"]}]},
            },
        },
    })
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn webhook_patches_over_tls_and_follows_its_files() {
    let (first, second) = (Identity::new(), Identity::new());
    let mut mount = Mount::new("files");
    mount.write(&first.certificate, &first.key, CONFIG);
    let webhook = Webhook::start(&mount);
    assert_eq!(webhook.image(&first), Ok("tokenmeter:first".to_owned()));
    assert!(webhook.line("review").contains("injected"));
    for path in ["/livez", "/readyz"] {
        assert_eq!(webhook.request(&first, &format!("GET {path}"), b"").unwrap().0, 200, "{path}");
    }
    assert!(webhook.connect(&second).is_err(), "the other certificate is not there yet");

    // A certificate without its key, and a config that is none: nothing changes, and the log says so.
    mount.write(&second.certificate, &first.key, CONFIG);
    assert!(webhook.line("cannot be used").contains("tls.crt"));
    mount.write(&first.certificate, &first.key, "container: 1");
    assert!(webhook.line("cannot be used").contains("injection.yaml"));
    assert_eq!(webhook.image(&first), Ok("tokenmeter:first".to_owned()));

    // New connections have the new pair. Those that are open keep theirs.
    mount.write(&second.certificate, &second.key, &CONFIG.replace("first", "second"));
    until("the second certificate", || webhook.connect(&second).is_ok());
    assert_eq!(webhook.image(&second), Ok("tokenmeter:second".to_owned()));

    // Plain files instead of links, renamed into place: another way to replace them.
    let plain = mount.path.join("new");
    fs::write(&plain, CONFIG.replace("first", "third")).unwrap();
    fs::rename(&plain, mount.path.join("injection.yaml")).unwrap();
    until("the third config", || webhook.image(&second) == Ok("tokenmeter:third".to_owned()));
}

#[test]
fn garbage_and_silent_peers_keep_no_connection() {
    let identity = Identity::new();
    let mut mount = Mount::new("garbage");
    mount.write(&identity.certificate, &identity.key, CONFIG);
    let webhook = Webhook::start(&mount);
    // Connected before the rest, without a handshake: it is closed while others are served.
    let mut silent = TcpStream::connect(webhook.address).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();

    let mut plain = TcpStream::connect(webhook.address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "there is no plain HTTP");

    for (head, body, status) in [
        ("POST /", &b"{"[..], 400),
        ("POST /", b"{}", 400),
        ("POST /", b"\xff\xfe", 400),
        ("GET /", b"", 405),
        ("DELETE /livez", b"", 405),
    ] {
        assert_eq!(webhook.request(&identity, head, body).unwrap().0, status, "{head} {body:?}");
    }
    let large = vec![b' '; 20 * 1024 * 1024];
    assert_eq!(webhook.request(&identity, "POST /", &large).unwrap().0, 413);
    assert_eq!(webhook.image(&identity), Ok("tokenmeter:first".to_owned()));
    assert_eq!(silent.read(&mut [0; 16]).unwrap(), 0, "the silent peer is closed");
}

/// The limit of connections: the oldest idle one makes room, and the others stay.
#[test]
fn idle_connections_keep_no_review_out() {
    let identity = Identity::new();
    let mut mount = Mount::new("idle");
    mount.write(&identity.certificate, &identity.key, CONFIG);
    let webhook = Webhook::start(&mount);
    let mut idle: Vec<_> = (0..256).map(|_| webhook.connect(&identity).unwrap()).collect();
    // Without an eviction the review waits until an idle connection ends by itself, after 30 s, and fails by PATIENCE.
    assert_eq!(webhook.image(&identity), Ok("tokenmeter:first".to_owned()));
    assert!(matches!(idle[0].read(&mut [0; 16]), Ok(0) | Err(_)), "the oldest is closed");
    let last = idle.last_mut().unwrap();
    write!(last, "GET /livez HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = last.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
}

/// Pods of a megabyte in hundreds of connections: what is kept of them is bounded, and the next review is answered.
#[test]
fn hostile_reviews_at_once_stay_within_64_mib() {
    let identity = Identity::new();
    let mut mount = Mount::new("hostile");
    mount.write(&identity.certificate, &identity.key, CONFIG);
    let webhook = Webhook::start(&mount);
    let with = |part: &str, items: usize| {
        let mut review = review();
        review["request"]["object"]["spec"]["volumes"] = "@".into();
        review.to_string().replace("\"@\"", &format!("[{}]", vec![part; items].join(",")))
    };
    // Too many values; nearly as many as are kept, at the greatest cost; and text.
    let text = format!("\"{}\"", "x".repeat(3_900_000));
    let bodies = [with(r#"{"name":""}"#, 120_000), with(r#"{"a":{"b":{"c":{}}}}"#, 2_400), with(&text, 1)];
    let (refused, message) = webhook.request(&identity, "POST /", bodies[0].as_bytes()).unwrap();
    assert_eq!(refused, 413);
    assert!(message.contains("more than 10000 JSON values"), "{message}");
    std::thread::scope(|scope| {
        for peer in 0..100 {
            let body = &bodies[peer % bodies.len()];
            let (webhook, identity) = (&webhook, &identity);
            scope.spawn(move || {
                // One that has to wait for too long gets no answer in time, which is another status.
                let _ = webhook.request(identity, "POST /", body.as_bytes());
            });
        }
    });
    assert_eq!(webhook.image(&identity), Ok("tokenmeter:first".to_owned()));
    let status = fs::read_to_string(format!("/proc/{}/status", webhook.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib <= 64 * 1024, "at most {peak_kib} KiB of memory were in use");
}

/// It would hold the place of large reviews for the whole time for a body.
#[test]
fn slow_large_review_keeps_no_other_out() {
    let identity = Identity::new();
    let mut mount = Mount::new("slow");
    mount.write(&identity.certificate, &identity.key, CONFIG);
    let webhook = Webhook::start(&mount);
    let mut slow = webhook.connect(&identity).unwrap();
    write!(slow, "POST / HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    slow.write_all(&[b' '; 100_000]).unwrap();
    slow.flush().unwrap();
    // More than fits into the buffers of its socket was read.
    std::thread::sleep(Duration::from_millis(200));
    let large = format!("{}{}", review(), " ".repeat(100_000));
    let began = Instant::now();
    assert_eq!(webhook.request(&identity, "POST /", large.as_bytes()).unwrap().0, 200);
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for {:?}", began.elapsed());
}

#[test]
fn review_needs_the_client_certificate() {
    let (server, api_server, other) = (Identity::new(), Identity::new(), Identity::new());
    let mut mount = Mount::new("client");
    mount.write(&server.certificate, &server.key, CONFIG);
    let authorities = mount.file("client-ca.crt");
    fs::write(&authorities, &api_server.certificate).unwrap();
    let webhook = Webhook::with(&mount, &["--client-ca", &authorities]);
    assert_eq!(webhook.image(&server.presenting(&api_server)), Ok("tokenmeter:first".to_owned()));
    let (status, message) = webhook.request(&server, "POST /", review().to_string().as_bytes()).unwrap();
    assert_eq!(status, 403);
    assert!(message.contains("--client-ca"), "{message}");
    assert_eq!(webhook.request(&server, "GET /readyz", b"").unwrap().0, 200, "probes present none");
    let refused = webhook.request(&server.presenting(&other), "POST /", review().to_string().as_bytes());
    assert!(refused.is_err(), "its certificate is of another authority: {refused:?}");
}

const DEPLOYMENT: &str = "
apiVersion: v1
kind: Service
metadata: {name: vllm}
spec: {ports: [{port: 8000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec:
  template:
    metadata: {labels: {app: vllm}}
    spec:
      containers:
      - {name: vllm, command: [vllm, serve, qwen], lifecycle: {preStop: {exec: {command: [sleep, '5']}}}}
";

fn dry_run(mount: &Mount, manifest: &str) -> (Option<i32>, String, String) {
    output(&["inject", "--config", &mount.file("injection.yaml"), "--dry-run", &mount.file(manifest)])
}

#[test]
fn dry_run_prints_the_pod_or_the_reason() {
    let mut mount = Mount::new("dry");
    mount.write(DEPLOYMENT, "kind: Service\n", CONFIG);
    let (code, stdout, stderr) = dry_run(&mount, "tls.crt");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("Deployment vllm: container vllm keeps its preStop hook"), "{stderr}");
    let changed: Value = serde_saphyr::from_str(&stdout).unwrap();
    assert_eq!(changed["spec"]["template"]["spec"]["initContainers"][0]["image"], "tokenmeter:first");

    let (code, stdout, stderr) = dry_run(&mount, "tls.key");
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("tls.key: no object in it is a Pod"), "{stderr}");

    mount.write(&DEPLOYMENT.replace("serve", "bench"), "", CONFIG);
    let (code, stdout, stderr) = dry_run(&mount, "tls.crt");
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("Deployment vllm: not metered: no container"), "{stderr}");
}

#[test]
fn webhook_stops_after_its_endpoint_is_removed() {
    let identity = Identity::new();
    let mut mount = Mount::new("stop");
    mount.write(&identity.certificate, &identity.key, CONFIG);
    let mut webhook = Webhook::start(&mount);
    // An idle connection does not hold the process.
    let mut idle = webhook.connect(&identity).unwrap();
    webhook.signal("TERM");
    webhook.line("stopping");
    let status = webhook.request(&identity, "GET /readyz", b"").unwrap().0;
    assert_eq!(status, 503);
    assert_eq!(webhook.image(&identity), Ok("tokenmeter:first".to_owned()), "pods are still served");
    let _ = idle.read(&mut [0; 16]);
    assert_eq!(webhook.child.wait().unwrap().code(), Some(0));
}

#[test]
fn webhook_without_usable_files_does_not_start() {
    let identity = Identity::new();
    let mut mount = Mount::new("start");
    mount.write(&identity.certificate, &identity.key, "native: true");
    let arguments = arguments(&mount, "127.0.0.1:0");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, _, stderr) = output(&arguments);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("injection.yaml") && stderr.contains("container"), "{stderr}");
}
