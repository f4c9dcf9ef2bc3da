//! TLS of other implementations on both sides of the proxy: OpenSSL's programs, and Python's standard library.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::proxy::Proxy;
use crate::tls_sides::Pki;

/// A server program; killed when dropped.
struct Server {
    child: Child,
    port: u16,
    // A server whose output is closed may end.
    _output: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts it and reads the port from the first line with `mark`: the digits after it.
    fn start(program: &str, arguments: &[&str], mark: &str) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}; apt-get install {program}"));
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once(mark)?;
            port.trim().parse().ok()
        });
        Self { child, port: port.expect("it names its port"), _output: output }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

/// Starts a proxy with TLS on both sides.
fn between(server: &Server, pki: &Pki) -> Proxy {
    let (ca, certificate, key) = (pki.path("ca.crt"), pki.path("tls.crt"), pki.path("tls.key"));
    let options = ["--upstream-ca", &ca, "--listen-tls", "127.0.0.1:0"];
    Proxy::start_for(
        &server.url(),
        &[&options[..], &["--tls-cert", &certificate, "--tls-key", &key]].concat(),
    )
}

#[test]
#[ignore = "needs openssl"]
fn openssl_is_served_by_openssl() {
    let pki = Pki::new("openssl-peers");
    let (ca, certificate, key) = (pki.path("ca.crt"), pki.path("tls.crt"), pki.path("tls.key"));
    for (version, spoken) in [("-tls1_2", "Protocol  : TLSv1.2"), ("-tls1_3", "Protocol  : TLSv1.3")] {
        let files = ["-cert", &certificate, "-key", &key];
        let listen = ["s_server", "-accept", "127.0.0.1:0", "-www", version];
        let server = Server::start("openssl", &[&listen[..], &files].concat(), "ACCEPT 127.0.0.1:");
        let proxy = between(&server, &pki);
        let address = proxy.data.to_string();
        let client = ["s_client", "-connect", &address, "-CAfile", &ca, version, "-verify_return_error"];
        let request = "GET /status HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        let output = crate::tls::run("openssl", &[&client[..], &["-quiet", "-ign_eof"]].concat(), request);
        // The page of the server names the version and the cipher of its own connection.
        assert!(output.contains("HTTP/1.1 200 ok"), "{output}");
        assert!(output.contains(spoken) && output.contains("</HTML>"), "{version}: {output}");
    }
}

#[test]
#[ignore = "needs python3"]
fn python_is_served_by_python() {
    let pki = Pki::new("python-peers");
    let (ca, certificate, key) = (pki.path("ca.crt"), pki.path("tls.crt"), pki.path("tls.key"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/process/tls_peer.py");
    for version in ["1.2", "1.3"] {
        let server = Server::start("python3", &[program, "serve", version, &certificate, &key], "port ");
        let proxy = between(&server, &pki);
        let output =
            crate::tls::run("python3", &[program, "ask", version, &ca, &proxy.data.port().to_string()], "");
        assert_eq!(output, format!("TLSv{version}: 3 answers of 40 tokens\n"));
        let page = proxy.page_when("all ended", |page| page.sum("tokenmeter_exchanges_total", &[]) == 3.0);
        let output = [("type", "output"), ("provenance", "reported")];
        assert_eq!(page.sum("tokenmeter_tokens_total", &output), 120.0);
        assert_eq!(page.sum("tokenmeter_exchanges_total", &[("ending", "complete")]), 3.0);
    }
}
