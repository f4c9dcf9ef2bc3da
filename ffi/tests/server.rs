//! The C++ server of `examples/embed`, metered by the installed library: whole answers, and clients that leave.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::install::{Stream, build_example, command_of, stream};
use crate::prefix::{prefix, with_prefix};
use crate::toolchain::temporary;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = temporary("server");
        let warnings = "c++ -Wall -Wextra -Werror ";
        build_example("server.cpp", &folder, &command_of("server.cpp", "c++ ").replacen("c++ ", warnings, 1));
        folder.join("server")
    })
}

/// A running server, killed when it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts one that answers with the body of a recorded stream.
    fn start(stream: &Stream, pause_ms: u32) -> Self {
        let answer = program().with_file_name(format!("answer-{pause_ms}.sse"));
        fs::write(&answer, &stream.transcript.body).expect("a file can be written");
        let mut command = Command::new(program());
        command.arg(answer).arg("0").arg(pause_ms.to_string()).stdout(Stdio::piped());
        let mut child = with_prefix(&mut command, prefix()).spawn().expect("it was compiled");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is a pipe"))
            .read_line(&mut line)
            .expect("it is text");
        let address = line.trim().strip_prefix("http://").expect("it prints its address").to_owned();
        Self { child, address }
    }

    fn send(&self, method: &str, path: &str, body: &[u8]) -> BufReader<TcpStream> {
        let mut connection = TcpStream::connect(&self.address).expect("it listens");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all(&[head.as_bytes(), body].concat()).expect("it reads");
        BufReader::new(connection)
    }

    fn chat(&self, stream: &Stream) -> BufReader<TcpStream> {
        self.send("POST", "/v1/chat/completions", &stream.transcript.request)
    }

    /// Waits until the page has a sample that begins and ends so: a record is made after the last byte was sent.
    fn wait_for(&self, begin: &str, end: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut page = String::new();
            self.send("GET", "/metrics", b"").read_to_string(&mut page).expect("the page is text");
            if page.lines().any(|line| line.starts_with(begin) && line.ends_with(end)) {
                return page;
            }
            assert!(Instant::now() < deadline, "no {begin} … {end} in\n{page}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        drop(killed);
    }
}

/// The body of a response in chunks.
fn body(mut response: impl BufRead) -> Vec<u8> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        response.read_line(&mut line).expect("a head is text");
    }
    let mut body = Vec::new();
    loop {
        line.clear();
        response.read_line(&mut line).expect("a length is text");
        let length = usize::from_str_radix(line.trim(), 16).expect("a length is hexadecimal");
        let mut chunk = vec![0; length + 2];
        response.read_exact(&mut chunk).expect("the chunk is whole");
        body.extend(&chunk[..length]);
        if length == 0 {
            return body;
        }
    }
}

#[test]
#[ignore = "needs g++, pkg-config and cpp-httplib"]
fn whole_answer_has_its_tokens_on_the_page() {
    let stream = stream("vllm-0.32.0/chat-stream-long");
    let server = Server::start(&stream, 0);
    assert_eq!(body(server.chat(&stream)), stream.transcript.body);
    let page = server.wait_for("tokenmeter_exchanges_total{", "ending=\"length\"} 1");
    for (direction, count) in [("input", &stream.input), ("output", &stream.output)] {
        let labels = format!("model=\"tiny\",type=\"{direction}\",provenance=\"reported\"");
        let sample = format!("tokenmeter_tokens_total{{{labels}}} {count}");
        assert!(page.lines().any(|line| line == sample), "no {sample} in\n{page}");
    }
}

#[test]
#[ignore = "needs g++, pkg-config and cpp-httplib"]
fn client_that_leaves_ends_the_generation() {
    let stream = stream("vllm-0.32.0/chat-stream-long");
    let server = Server::start(&stream, 20);
    let mut response = server.chat(&stream);
    let mut some = [0; 2000];
    response.read_exact(&mut some).expect("the answer begins");
    server.wait_for("tokenmeter_exchanges_in_flight{model=\"tiny\"}", " 1");
    drop(response);
    let page = server.wait_for("tokenmeter_exchanges_total{", "ending=\"client_abort\"} 1");
    assert!(page.contains("tokenmeter_exchanges_in_flight{model=\"tiny\"} 0\n"), "{page}");
}
