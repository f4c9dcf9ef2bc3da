//! Every recorded response, replayed by a scripted server in its original pieces: the client receives the same bytes
//! and the same kind of end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use harness::Transcript;
use harness::message::Message;
use scan::Framing;

use crate::proxy::Proxy;

/// Reads one request; returns its `x-case` number, if it has one.
fn read_request(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let (mut case, mut length, mut line) = (None, 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let field = line.trim_end().to_ascii_lowercase();
        match field.split_once(": ") {
            Some(("x-case", value)) => case = value.parse().ok(),
            Some(("content-length", value)) => length = value.parse().ok()?,
            None if field.is_empty() => break,
            _ => {}
        }
    }
    stream.read_exact(&mut vec![0; length]).ok()?;
    case
}

fn replay(listener: &TcpListener, cases: &[Transcript]) {
    for connection in listener.incoming().map_while(Result::ok) {
        let mut stream = BufReader::new(connection);
        // A probe connects and sends nothing.
        let Some(case) = read_request(&mut stream).map(|n| &cases[n]) else { continue };
        let mut out = stream.into_inner();
        let media = match case.framing {
            Framing::Sse => "text/event-stream; charset=utf-8",
            Framing::Ndjson => "application/x-ndjson",
            Framing::Json | Framing::Messages => "application/json",
            Framing::EventStream => "application/vnd.amazon.eventstream",
        };
        let head = format!(
            "HTTP/1.1 {} Recorded\r\nContent-Type: {media}\r\nTransfer-Encoding: chunked\r\n\r\n",
            case.status
        );
        let mut sent = out.write_all(head.as_bytes());
        for (_, piece) in case.reads() {
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            sent = sent.and_then(|()| out.write_all(&chunk));
        }
        if case.whole {
            sent = sent.and_then(|()| out.write_all(b"0\r\n\r\n"));
        }
        // The client side asserts; a proxy that closed early fails there.
        drop(sent);
    }
}

#[test]
fn client_gets_the_recorded_bytes() {
    let cases: &'static [Transcript] = Vec::leak(Transcript::all());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    // Of another kind the proxy knows that only its own option brings an empty usage, which it removes.
    let kind = ["--kind", "vllm", "--engine-metrics", "off"];
    let proxy = Proxy::start(listener.local_addr().expect("an address"), &kind);
    std::thread::spawn(move || replay(&listener, cases));

    for (number, case) in cases.iter().enumerate() {
        let path = &case.path;
        let mut stream = TcpStream::connect(proxy.data).expect("the data port is open");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nX-Case: {number}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            case.request.len()
        );
        stream.write_all(&[head.as_bytes(), &case.request].concat()).expect("it reads");
        let mut answer = Vec::new();
        // A truncated body may end with a reset; the bytes before it count.
        let _ = stream.read_to_end(&mut answer);
        let message = Message::read(&answer, 0, answer.len());
        assert!(message.start.contains(&case.status.to_string()), "{}: {}", case.name, message.start);
        assert!(message.body == case.body, "{}: the body changed on its way", case.name);
        assert_eq!(message.whole, case.whole, "{}: the end of the body", case.name);
    }
    let page = proxy.page_when("all are counted", |page| {
        page.sum("tokenmeter_exchanges_total", &[]) == cases.len() as f64
    });
    assert_eq!(page.sum("tokenmeter_dropped_total", &[]), 0.0);
}
