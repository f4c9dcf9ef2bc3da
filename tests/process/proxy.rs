//! A running tokenmeter: started on free ports, stopped when dropped.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chance::Side;

use crate::meter_page::Page;
use crate::tls_sides;

/// The deadline of what takes no time on an idle machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The process and its addresses.
pub(crate) struct Proxy {
    child: Child,
    log: Arc<Mutex<String>>,
    /// The address for clients; unspecified if they connect to a Unix socket.
    pub(crate) data: SocketAddr,
    /// The address on which it listens for clients: `data`, unless they reach it through a bridge.
    pub(crate) listener: SocketAddr,
    /// The address of the metrics.
    pub(crate) admin: SocketAddr,
}

impl Proxy {
    /// Starts it in front of `upstream` and waits until it logs its addresses. It sends no requests of its own to the
    /// upstream, unless the options enable them.
    pub(crate) fn start(upstream: SocketAddr, options: &[&str]) -> Self {
        Self::start_with(upstream, options, &[])
    }

    /// As [`Proxy::start`], with these environment variables.
    pub(crate) fn start_with(upstream: SocketAddr, options: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::spawn_for(Command::new(env!("CARGO_BIN_EXE_tokenmeter")), upstream, options, environment)
    }

    /// As [`Proxy::start`], for an upstream by its URL.
    pub(crate) fn start_for(url: &str, options: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_tokenmeter")), url, options, &[])
    }

    /// As [`Proxy::start`], with this limit of file descriptors.
    pub(crate) fn start_with_descriptors(descriptors: usize, upstream: SocketAddr, options: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {descriptors} && exec \"$0\" \"$@\"")]);
        shell.arg(env!("CARGO_BIN_EXE_tokenmeter"));
        Self::spawn_for(shell, upstream, options, &[])
    }

    /// Spawns it for an upstream by its address, which has TLS if that side of this run has.
    fn spawn_for(
        command: Command,
        upstream: SocketAddr,
        options: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        if !Side::Upstreams.has_tls() {
            return Self::spawn(command, &format!("http://{upstream}"), options, environment);
        }
        let (url, ca) = tls_sides::front(upstream);
        Self::spawn(command, &url, &[&["--upstream-ca", &ca][..], options].concat(), environment)
    }

    fn spawn(mut command: Command, url: &str, options: &[&str], environment: &[(&str, &str)]) -> Self {
        let quiet = ["--kind", "--engine-metrics"].iter().any(|option| options.contains(option));
        let quiet = if quiet { &[][..] } else { &["--kind", "openai", "--engine-metrics", "off"] };
        // Tests of listeners name their own.
        let is_named = options.iter().any(|option| option.starts_with("--listen"));
        let is_bridged = Side::Clients.has_tls() && !is_named;
        let listen = match (is_named, is_bridged) {
            (true, _) => Vec::new(),
            (_, true) => tls_sides::options().to_vec(),
            _ => vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()],
        };
        let mut child = command
            .args(["run", "--upstream", url, "--admin", "127.0.0.1:0"])
            .args(listen)
            .args(options)
            .args(quiet)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let mut said = String::new();
        let line = lines
            .by_ref()
            .map_while(Result::ok)
            .inspect(|line| said.extend([line, "\n"]))
            .find(|line| line.contains("listening on "))
            .expect("it logs its addresses before it ends");
        // Read on, so that its log does not fill the pipe and block it.
        let log = Arc::new(Mutex::new(said));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = kept.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
        });
        let address = |after: &str| {
            let rest = line.split(after).nth(1).unwrap_or_else(|| panic!("no {after:?} in {line}"));
            let end =
                rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(rest.len());
            rest[..end].parse().unwrap_or_else(|_| panic!("no address after {after:?} in {line}"))
        };
        let listener = if line.contains("listening on unix:") {
            SocketAddr::from(([0, 0, 0, 0], 0))
        } else if line.contains("listening on https://") {
            address("listening on https://")
        } else {
            address("listening on http://")
        };
        let data = if is_bridged { tls_sides::bridge(listener) } else { listener };
        Self { data, listener, admin: address("metrics http://"), child, log }
    }

    /// The metrics page.
    pub(crate) fn page(&self) -> Page {
        Page::fetch(self.admin)
    }

    /// Fetches the metrics until they satisfy `wanted`; fails the test after [`DEADLINE`].
    pub(crate) fn page_when(&self, what: &str, wanted: impl Fn(&Page) -> bool) -> Page {
        let end = Instant::now() + DEADLINE;
        loop {
            let page = self.page();
            if wanted(&page) {
                return page;
            }
            assert!(Instant::now() < end, "{what}: not within {DEADLINE:?}; the page:\n{}", page.text);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first line of the log that contains `part`; fails the test after [`DEADLINE`].
    pub(crate) fn log_line(&self, part: &str) -> String {
        let end = Instant::now() + DEADLINE;
        loop {
            let log = self.log();
            if let Some(line) = log.lines().find(|line| line.contains(part)) {
                return line.to_owned();
            }
            assert!(Instant::now() < end, "no line with {part}; the log:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends SIGTERM, as a container runtime does.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends SIGHUP, so that it reloads its files.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    /// Kills it, as the kernel does when memory is short.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the process was not waited for");
        self.child.wait().expect("a child can be waited for");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the process takes signals");
    }

    /// Waits until it has ended; fails the test after `limit`.
    pub(crate) fn ended(&mut self, limit: Duration) -> ExitStatus {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be asked") {
                return status;
            }
            assert!(Instant::now() < end, "it still runs; its log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says VmRSS");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
        kib * 1024
    }

    /// Returns true while it runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // An ended process is fine here: a test that needs it has failed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
