//! A child process, killed on drop, and a small HTTP client.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The timeout of all waits, which usually take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a command without the tester's `TOKENMETER_` variables.
pub(crate) fn tokenmeter(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokenmeter"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TOKENMETER_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn output(arguments: &[&str]) -> (Option<i32>, String, String) {
    finished(tokenmeter(arguments).output().unwrap())
}

/// Returns exit code, stdout and stderr.
pub(crate) fn finished(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A running proxy.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    /// The lines before the start line, which may be any that the program writes meanwhile.
    before_start: RefCell<Vec<String>>,
    /// The listener of clients.
    pub(crate) data: SocketAddr,
    /// The admin address.
    pub(crate) admin: SocketAddr,
}

impl Running {
    /// Starts `run` in front of `upstream`, on free ports, and waits for its start line.
    pub(crate) fn start(upstream: SocketAddr, options: &[&str]) -> Self {
        let url = format!("http://{upstream}");
        let mut arguments =
            vec!["run", "--upstream", &url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        arguments.extend(options);
        Self::spawn(tokenmeter(&arguments))
    }

    /// Starts a command that prints its listeners.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // The test may have ended; the pipe is read on, so that the child does not block.
                let _ = sender.send(line);
            }
        });
        let before_start = RefCell::default();
        let mut running =
            Self { child, lines, before_start, data: ([0; 4], 0).into(), admin: ([0; 4], 0).into() };
        let (line, before) = running.next_line("listening on http://");
        running.before_start = before.into();
        running.data = address_after(&line, "listening on http://");
        running.admin = address_after(&line, "metrics http://");
        running
    }

    /// Waits for the next line on stderr that contains `part`.
    pub(crate) fn line(&self, part: &str) -> String {
        let mut before = self.before_start.borrow_mut();
        match before.iter().position(|line| line.contains(part)) {
            Some(at) => before.remove(at),
            None => self.next_line(part).0,
        }
    }

    /// Waits for the next line that contains `part`. Returns it and those before it.
    fn next_line(&self, part: &str) -> (String, Vec<String>) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return (line, seen),
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no line with {part:?} in time: {seen:#?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("no line with {part:?}: {seen:#?}"),
            }
        }
    }

    /// Returns the lines received so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill -s {name}");
    }

    /// Waits for the end of the process; returns its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns true while the process runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the address after `part` in a line.
pub(crate) fn address_after(line: &str, part: &str) -> SocketAddr {
    let rest = line.split(part).nth(1).unwrap_or_else(|| panic!("no {part:?} in {line}"));
    let end = rest.find(|c: char| !c.is_ascii_digit() && !".:".contains(c)).unwrap_or(rest.len());
    rest[..end].parse().unwrap_or_else(|_| panic!("no address after {part:?} in {line}"))
}

/// Returns status and body of a GET on a new connection.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    get_with(address, path, "")
}

/// Returns status and body of a GET with further header fields, each with its line end.
pub(crate) fn get_with(address: SocketAddr, path: &str, fields: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{fields}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// Repeats a GET until the response satisfies `wanted`.
pub(crate) fn get_until(
    address: SocketAddr,
    path: &str,
    wanted: impl Fn(u16, &str) -> bool,
) -> (u16, String) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, body) = get(address, path);
        if wanted(status, &body) {
            return (status, body);
        }
        assert!(Instant::now() < deadline, "{path} still answers {status} {body}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns an address without a listener.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Starts a server that accepts connections and sends nothing.
pub(crate) fn silent_server(address: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).collect::<Vec<_>>());
    address
}
