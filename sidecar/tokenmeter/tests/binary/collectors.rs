//! A missing collector, or one of the other protocol: the log has the likely cause at the first attempt.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::child::{PATIENCE, Running, free, silent_server, tokenmeter};

/// The first frame of a server of HTTP/2: no settings.
const SETTINGS_FRAME: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Starts a proxy that exports metrics every 200 ms.
fn exporting(collector: SocketAddr, protocol: &str) -> Running {
    let upstream = silent_server(([127, 0, 0, 1], 0).into());
    let (url, collector) = (format!("http://{upstream}"), format!("http://{collector}"));
    let mut command = tokenmeter(&[
        "run",
        "--upstream",
        &url,
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--drain-delay-ms",
        "0",
        "--otlp-endpoint",
        &collector,
        "--otlp-protocol",
        protocol,
    ]);
    command.env("OTEL_METRIC_EXPORT_INTERVAL", "200");
    Running::spawn(command)
}

#[test]
fn start_names_each_signal_and_its_collector() {
    let collector = free();
    let running = exporting(collector, "http/protobuf");
    running.line(&format!("OpenTelemetry: metrics go to http://{collector}/v1/metrics by http/protobuf"));
    running.line(&format!("OpenTelemetry: traces go to http://{collector}/v1/traces by http/protobuf"));
}

#[test]
fn refused_connection_is_logged_at_the_first_attempt() {
    for protocol in ["http/protobuf", "grpc"] {
        let running = exporting(free(), protocol);
        let line = running.line("export failed and is retried");
        assert!(
            line.contains("check that the collector runs and listens on this port"),
            "{protocol}: {line}"
        );
        assert!(line.contains("WARN") && line.contains("metric"), "{protocol}: {line}");
    }
}

#[test]
fn grpc_port_is_guessed_and_recovery_logged() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = listener.local_addr().unwrap();
    let recovered = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&recovered);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // An error is a client that closed the connection.
            let _ = match state.load(Ordering::SeqCst) {
                true => taken(stream),
                false => {
                    stream.write_all(&SETTINGS_FRAME).and_then(|()| stream.read(&mut [0; 4096]).map(drop))
                }
            };
        }
    });
    let running = exporting(collector, "http/protobuf");
    let line = running.line("export failed and is retried");
    assert!(line.contains("if it is a gRPC port, set --otlp-protocol grpc"), "{line}");
    recovered.store(true, Ordering::SeqCst);
    running.line("export recovered");
}

/// Reads a request and answers 200.
fn taken(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut read, mut buffer) = (Vec::new(), [0; 65536]);
    let whole = |read: &[u8]| {
        let text = String::from_utf8_lossy(read);
        let head = read.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        (read.len() >= head + 4 + length.parse::<usize>().ok()?).then_some(())
    };
    while whole(&read).is_none() {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            more => read.extend_from_slice(&buffer[..more]),
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

#[test]
fn http_port_is_guessed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // An error is a client that closed the connection.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n400 Bad Request");
            // A socket closed with bytes unread resets the connection, and the answer may be lost with it.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let running = exporting(collector, "grpc");
    let line = running.line("export failed and is retried");
    assert!(line.contains("if it is an HTTP port, set --otlp-protocol http/protobuf"), "{line}");
}
