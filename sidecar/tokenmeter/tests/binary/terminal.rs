//! On a terminal: Ctrl-C exits at once if no request is in flight.
//!
//! script(1) of util-linux gives the terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{PATIENCE, address_after, silent_server};

/// A proxy with a drain delay of a minute, on a terminal.
struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    screen: BufReader<ChildStdout>,
    data: std::net::SocketAddr,
}

impl OnTerminal {
    fn start() -> Self {
        let upstream = silent_server(([127, 0, 0, 1], 0).into());
        let run = format!(
            "{} --upstream http://{upstream} --listen 127.0.0.1:0 --admin 127.0.0.1:0 --drain-delay-ms 60000",
            env!("CARGO_BIN_EXE_tokenmeter")
        );
        let mut command = Command::new("script");
        command.args(["-qefc", &run, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut running = Self { child, keys, screen, data: ([0; 4], 0).into() };
        let line = running.line("listening on http://");
        running.data = address_after(&line, "listening on http://");
        running
    }

    fn line(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.screen.read_line(&mut line).unwrap() > 0, "it ended without {part:?}");
        }
        line
    }

    fn interrupt(&mut self) {
        self.keys.write_all(b"\x03").unwrap();
        self.keys.flush().unwrap();
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn idle_proxy_ends_at_once() {
    let mut running = OnTerminal::start();
    running.interrupt();
    running.line("stopping: nothing is in flight");
    running.line("stopped");
    let end = Instant::now() + PATIENCE;
    while running.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn proxy_with_a_request_drains() {
    let mut running = OnTerminal::start();
    let mut client = TcpStream::connect(running.data).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(client, "GET /never HTTP/1.1\r\nHost: {}\r\n\r\n", running.data).unwrap();
    // The request is in flight once its head is read.
    std::thread::sleep(Duration::from_millis(500));
    running.interrupt();
    running.line("draining");
    // A second one ends it.
    running.interrupt();
    let mut rest = String::new();
    running.screen.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("second signal"), "{rest}");
}
