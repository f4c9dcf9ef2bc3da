//! The measured proxies: each is started on the proxies' core, with one worker.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::child::{Child, PROXY_CORE};
use crate::load::Target;
use crate::tls::{Certificate, Tls};
use crate::{Failure, scrape};

const NGINX: &str = include_str!("../peers/nginx.conf");
const HAPROXY: &str = include_str!("../peers/haproxy-http.cfg");

/// The script of the engine tests that starts LiteLLM with its settings.
const START_LITELLM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../engines/start-litellm");

/// Maximum time until a proxy accepts; LiteLLM needs most of it.
const TO_START: Duration = Duration::from_secs(120);

/// A measured proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// Receives and sends, nothing else.
    Floor,
    /// nginx.
    Nginx,
    /// HAProxy, reading HTTP.
    Haproxy,
    /// tokenmeter, metering.
    Tokenmeter(Binary),
    /// LiteLLM's proxy, which writes every frame anew.
    Litellm,
    /// vLLM's router.
    VllmRouter,
}

/// A binary of tokenmeter. Its texts live until the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    /// Its name in the tables.
    pub(crate) name: &'static str,
    /// Its path.
    pub(crate) path: &'static str,
}

impl Proxy {
    /// All proxies but tokenmeter.
    pub(crate) const PEERS: [Self; 5] =
        [Self::Floor, Self::Nginx, Self::Haproxy, Self::Litellm, Self::VllmRouter];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy-http",
            Self::Tokenmeter(binary) => binary.name,
            Self::Litellm => "litellm",
            Self::VllmRouter => "vllm-router",
        }
    }

    /// True if it can use TLS.
    pub(crate) fn has_tls(self) -> bool {
        matches!(self, Self::Nginx | Self::Haproxy | Self::Tokenmeter(_))
    }

    /// True if it is measured when `--proxies` is not given.
    pub(crate) fn is_default(self) -> bool {
        !matches!(self, Self::Litellm | Self::VllmRouter)
    }

    /// True if its responses have other bytes than the upstream's.
    pub(crate) fn rewrites(self) -> bool {
        self == Self::Litellm
    }

    /// Its version, as it reports it.
    pub(crate) fn version(self) -> Result<String, Failure> {
        let output = match self {
            Self::Floor => return Ok("floor: this program's own relay".into()),
            Self::Nginx => Command::new(nginx()).arg("-v").output(),
            Self::Haproxy => Command::new(haproxy()).arg("-v").output(),
            Self::Tokenmeter(binary) => Command::new(binary.path).arg("--version").output(),
            Self::Litellm => pip_version(&engines(), "litellm"),
            Self::VllmRouter => pip_version(&installed("bench"), "vllm-router"),
        };
        let output = output.map_err(|error| format!("{} does not run: {error}", self.name()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Ok(format!("{}: {}", self.name(), said.lines().next().unwrap_or("unknown")))
    }
}

// Debian installs them outside a user's PATH.
fn nginx() -> &'static str {
    if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" }
}

fn haproxy() -> &'static str {
    if Path::new("/usr/sbin/haproxy").exists() { "/usr/sbin/haproxy" } else { "haproxy" }
}

/// Returns the version of a Python package, whose environment is in a folder of its name below `folder`.
fn pip_version(folder: &str, package: &str) -> io::Result<Output> {
    let script = format!("import importlib.metadata as m; print(m.version('{package}'))");
    Command::new(format!("{folder}/{package}/bin/python")).args(["-c", &script]).output()
}

/// Returns the folder in which `tests/engines/install` installs LiteLLM.
fn engines() -> String {
    std::env::var("TOKENMETER_ENGINES").unwrap_or_else(|_| installed("engines"))
}

/// A program that `tests/bench/run` installs.
fn installed(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    format!("{home}/.cache/tokenmeter/{path}")
}

/// A folder for files of the peers, removed at the end.
pub(crate) struct RunDir {
    /// The folder.
    pub(crate) path: PathBuf,
    /// The certificate of the mock and of the proxies.
    pub(crate) certificate: Certificate,
}

impl RunDir {
    /// Makes it.
    pub(crate) fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("bench-proxy-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { certificate: Certificate::make(&path)?, path })
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // An error here leaves a folder behind, which is no failure.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A proxy that accepts connections.
pub(crate) struct Running {
    proxy: Proxy,
    /// Its processes.
    pub(crate) child: Child,
    /// Its address.
    pub(crate) address: String,
    /// The address of tokenmeter's metrics.
    pub(crate) admin: Option<String>,
    /// From the start of its process to the first accepted connection.
    pub(crate) start: Duration,
    tls: Option<Certificate>,
}

impl Running {
    /// Starts a proxy in front of `upstream`, with these further environment variables and TLS.
    pub(crate) fn start(
        proxy: Proxy,
        upstream: &str,
        folder: &RunDir,
        environment: &[(&str, &str)],
        tls: Tls,
    ) -> Result<Self, Failure> {
        let address = free_address()?;
        let log = folder.path.join("log");
        let certificate = &folder.certificate;
        let mut admin = None;
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let fill = |template: &str, file: &str| -> Result<String, Failure> {
            let path = folder.path.join(file);
            let (client, server) = peer_tls(proxy);
            let filled = template
                .replace("CLIENT_TLS", if tls.of_clients() { client } else { "" })
                .replace("SERVER_TLS", if tls.of_upstream() { server } else { "" })
                .replace("SCHEME", if tls.of_upstream() { "https" } else { "http" })
                .replace("RUNDIR", &folder.path.to_string_lossy())
                .replace("LISTEN", &address)
                .replace("UPSTREAM", upstream);
            fs::write(&path, filled)?;
            Ok(path.to_string_lossy().into_owned())
        };
        let (program, words) = match proxy {
            Proxy::Floor => {
                let program = std::env::current_exe()?.to_string_lossy().into_owned();
                (program, own(&["floor", &address, upstream]))
            }
            Proxy::Nginx => (nginx().to_owned(), own(&["-c", &fill(NGINX, "nginx.conf")?])),
            Proxy::Haproxy => (haproxy().to_owned(), own(&["-q", "-f", &fill(HAPROXY, "haproxy-http.cfg")?])),
            Proxy::Tokenmeter(binary) => {
                let metrics = admin.insert(free_address()?);
                let scheme = if tls.of_upstream() { "https" } else { "http" };
                let upstream = format!("{scheme}://{upstream}");
                let mut words = vec!["run", "--upstream", &upstream, "--kind", "vllm", "--admin", metrics];
                words.extend(["--workers", "1", "--engine-metrics", "off"]);
                let (chain, key) = (certificate.chain(), certificate.key());
                match tls.of_clients() {
                    true => words.extend(["--listen-tls", &address, "--tls-cert", &chain, "--tls-key", &key]),
                    false => words.extend(["--listen", &address]),
                }
                if tls.of_upstream() {
                    words.extend(["--upstream-ca", &chain]);
                }
                (binary.path.to_owned(), own(&words))
            }
            Proxy::Litellm => (START_LITELLM.to_owned(), own(&[port(&address), port(upstream)])),
            Proxy::VllmRouter => {
                let worker = format!("http://{upstream}");
                let words = ["--host", "127.0.0.1", "--port", port(&address), "--worker-urls", &worker];
                let metrics = free_address()?;
                let words =
                    words.into_iter().chain(["--prometheus-port", port(&metrics), "--log-level", "error"]);
                (installed("bench/vllm-router/bin/vllm-router"), own(&words.collect::<Vec<_>>()))
            }
        };
        let environment: Vec<String> =
            environment.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let before: Vec<&str> = ["env"].into_iter().chain(environment.iter().map(String::as_str)).collect();
        let began = Instant::now();
        let child = Child::start(PROXY_CORE, &before, &program, &words, Some(&log))?;
        let tls = tls.of_clients().then(|| certificate.clone());
        let mut running = Self { proxy, child, address, admin, start: Duration::ZERO, tls };
        while TcpStream::connect(&running.address).is_err() {
            if running.child.has_ended() || began.elapsed() > TO_START {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{} did not start: {said}", proxy.name()).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        running.start = began.elapsed();
        Ok(running)
    }

    /// The proxy as its clients reach it.
    pub(crate) fn target(&self) -> Target<'_> {
        Target { address: &self.address, tls: self.tls.as_ref(), rewrites: self.proxy.rewrites() }
    }

    /// Checks that the proxy counted the traffic, if it counts.
    pub(crate) fn check_counted(&self, output_tokens: u64) -> Result<(), Failure> {
        match &self.admin {
            Some(admin) => scrape::await_output_tokens(admin, output_tokens),
            None => Ok(()),
        }
    }
}

/// The words that a peer's configuration has for TLS of its clients and of its upstream.
fn peer_tls(proxy: Proxy) -> (&'static str, &'static str) {
    match proxy {
        Proxy::Nginx => (
            "ssl",
            // nginx compares names with names only, not with addresses, and speaks TLS 1.3 only if a setting names it.
            "proxy_ssl_verify on; proxy_ssl_trusted_certificate RUNDIR/cert.pem; proxy_ssl_name localhost; \
             proxy_ssl_protocols TLSv1.3;",
        ),
        Proxy::Haproxy => {
            ("ssl crt RUNDIR/both.pem alpn http/1.1", "ssl verify required ca-file RUNDIR/cert.pem")
        }
        Proxy::Floor | Proxy::Tokenmeter(_) | Proxy::Litellm | Proxy::VllmRouter => ("", ""),
    }
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or(address)
}

/// An unused address. Another process could take it before its user does; then the user reports that.
pub(crate) fn free_address() -> Result<String, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_peers_have_every_placeholder() {
        for (name, file) in [("nginx", NGINX), ("HAProxy", HAPROXY)] {
            for word in ["LISTEN", "UPSTREAM", "CLIENT_TLS", "SERVER_TLS"] {
                let lines = file.lines().filter(|line| !line.trim_start().starts_with('#'));
                assert!(lines.into_iter().any(|line| line.contains(word)), "{name}'s file has no {word}");
            }
        }
    }
}
