//! The degradation curve of a running proxy, and the errors where there is none.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use serde_json::Value;
use simulator::load::{self, Load};
use simulator::server::{Options, Server};
use simulator::shape::Vllm;
use tokio::runtime::Builder;

use crate::child::{PATIENCE, Running, free, get_until, output};

/// The simulated server, on a thread of its own until it is dropped.
struct Simulated {
    address: SocketAddr,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Simulated {
    fn start() -> Self {
        let (told, address) = channel();
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let server = runtime
                .block_on(Server::bind(([127, 0, 0, 1], 0).into(), Options::<Vllm>::default()))
                .unwrap();
            told.send(server.addr()).unwrap();
            // An error is the sender's drop: the signal itself.
            let _ = stopped.recv();
            runtime.block_on(server.shutdown());
        });
        Self { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().unwrap().join();
    }
}

/// A server that gives the same answer to every request.
fn answering(head: &'static str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            request.find(|line| line.is_empty());
            // The client may have disconnected.
            let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}\n");
        }
    });
    address
}

/// Sends this number of streams of 20 tokens through the proxy.
fn stream(proxy: SocketAddr, requests: u64, concurrency: u32) {
    let load = Load {
        model: Some("simulated-8b".to_owned()),
        output_tokens: 20,
        concurrency,
        requests,
        time: PATIENCE,
        ..Load::new(proxy)
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(load::run(&load)).unwrap();
    assert_eq!((report.completed, report.failures.len()), (requests, 0), "{report:?}");
}

/// Waits until this number of exchanges has ended: a client has its last byte a moment before.
fn settled(admin: SocketAddr, exchanges: u64) {
    let line = format!("dialect=\"openai_chat\",ending=\"length\"}} {exchanges}");
    get_until(admin, "/metrics", |_, page| page.lines().any(|one| one.contains(&line)));
}

fn curve(admin: SocketAddr, more: &[&str]) -> (Option<i32>, String, String) {
    let from = format!("http://{admin}/metrics");
    output(&[&["curve", "--from", &from], more].concat())
}

#[test]
fn curve_shows_the_streamed_exchanges() {
    let upstream = Simulated::start();
    let options = ["--kind", "vllm", "--objective", "floor", "--log-level", "warn"];
    let running = Running::start(upstream.address, &options);
    let (code, _, stderr) = curve(running.admin, &[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("has timed no stream yet; send streamed requests"), "{stderr}");

    stream(running.data, 3, 1);
    stream(running.data, 12, 6);
    settled(running.admin, 15);
    let (code, stdout, stderr) = curve(running.admin, &[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let title = format!("simulated-8b at {}: 15 streams since the start of the proxy\n", upstream.address);
    assert!(stdout.starts_with(&title), "{stdout}");
    assert!(stdout.contains("floor (10 tokens/s): kept up to "), "{stdout}");

    let (code, stdout, _) = curve(running.admin, &["--format", "json", "--model", "simulated-8b"]);
    assert_eq!(code, Some(0));
    let told: Value = serde_json::from_str(&stdout).unwrap();
    let crowds = told["models"][0]["by_concurrency"].as_array().unwrap();
    let exchanges: u64 = crowds.iter().map(|crowd| crowd["exchanges"].as_u64().unwrap()).sum();
    assert_eq!(exchanges, 15, "{stdout}");
    assert_eq!(crowds[0]["concurrency"], "1", "{stdout}");
    assert!(crowds.len() > 1, "six at once are not one: {stdout}");
    for crowd in crowds {
        // On a busy machine a stream may pause, or arrive at once.
        let speed = crowd["speed_tokens_per_second"]["mean"].as_f64().unwrap();
        assert!(speed > 0.0, "{stdout}");
        assert!(crowd["first_token_seconds"]["p99"].as_f64().unwrap() > 0.0, "{stdout}");
    }
    // 20 tokens each; the first token of an answer has no speed.
    assert_eq!(told["models"][0]["by_position"][0]["tokens"], 15 * 19, "{stdout}");
    let knee = &told["models"][0]["knees"][0];
    assert_eq!(knee["basis"], "configured", "{stdout}");
    assert_eq!(knee["judged_exchanges"], 15, "{stdout}");

    let file = std::env::temp_dir().join(format!("tokenmeter-curve-{}.svg", std::process::id()));
    let path = file.to_str().unwrap();
    let (code, stdout, stderr) = curve(running.admin, &["--format", "svg", "--output", path]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "", ""));
    let picture = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    let (code, _, stderr) = curve(running.admin, &["--output", "/nonexistent/curve.txt"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("cannot write /nonexistent/curve.txt: No such file"), "{stderr}");

    let (code, _, stderr) = curve(running.admin, &["--model", "simulated-8"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no stream of a model `simulated-8`; did you mean `simulated-8b`?"), "{stderr}");
}

#[test]
fn window_holds_streams_that_ended_in_it() {
    let upstream = Simulated::start();
    let running = Running::start(upstream.address, &["--kind", "vllm", "--log-level", "warn"]);
    let (code, _, stderr) = curve(running.admin, &["--over", "1s"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no stream ended within those 1 s; use a longer window"), "{stderr}");

    stream(running.data, 2, 2);
    settled(running.admin, 2);
    let admin = running.admin;
    let window = std::thread::spawn(move || curve(admin, &["--over", "2", "--format", "json"]));
    // Streams one after another while the window is open, and a little longer.
    let mut sent = 2;
    while !window.is_finished() {
        stream(running.data, 1, 1);
        sent += 1;
    }
    let (code, stdout, stderr) = window.join().unwrap();
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["window_seconds"], 2.0);
    let crowds = told["models"][0]["by_concurrency"].as_array().unwrap();
    let exchanges: u64 = crowds.iter().map(|crowd| crowd["exchanges"].as_u64().unwrap()).sum();
    assert!(exchanges > 0 && exchanges <= sent - 2, "the two before it are not in it: {sent} {stdout}");
}

#[test]
fn errors_name_the_cause_and_the_remedy() {
    let closed = free();
    let (code, _, stderr) = curve(closed, &[]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("cannot be read: the connection failed") && stderr.contains("with --from"),
        "{stderr}"
    );

    // The port for clients: the upstream answers there.
    let upstream = Simulated::start();
    let running = Running::start(upstream.address, &["--kind", "vllm", "--log-level", "warn"]);
    let (code, _, stderr) = curve(running.data, &[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("this is not the metrics page of a tokenmeter"), "{stderr}");
    assert!(stderr.contains("not the address for clients"), "{stderr}");

    for (head, body, part) in [
        (
            "421 Misdirected Request",
            "this host name is not allowed",
            "/metrics responds 421: this host name is not allowed",
        ),
        ("404 Not Found", "nothing here", "/metrics responds 404: nothing here; name the admin address"),
        ("200 OK", "<html>", "this is not the metrics page of a tokenmeter"),
    ] {
        let (code, _, stderr) = curve(answering(head, body), &[]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(part), "{part} in {stderr}");
    }

    for (flags, part) in [
        (["--from", "gpu:9464"], "write http://HOST:PORT"),
        (["--over", "soon"], "as in 60s, 5m or 2h"),
        (["--format", "png"], "table, json, svg"),
    ] {
        let (code, _, stderr) = output(&[&["curve"], flags.as_slice()].concat());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
}
