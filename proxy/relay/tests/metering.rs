//! The calls of the relay to an exchange, seen in its record.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use meter::{Ending, Provenance, Record};

use crate::support::{DEADLINE, Peer, Proxy, Upstream, upstream_body};

const REQUEST: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{\"model\":\"m\",\"stream\": true}";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#;

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn delta(text: &str) -> String {
    chunk(&format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"))
}

/// The record when a client does `act` with an upstream that does `script`.
fn record(script: impl Fn(&mut Peer) + Send + Sync + 'static, act: impl FnOnce(Peer)) -> Record {
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.exactly(28);
        script(peer);
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(REQUEST);
    act(client);
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert!(proxy.inbox.recv_timeout(Duration::from_millis(50)).is_err(), "one request, one record");
    assert!(proxy.seen().lost.is_empty());
    std::sync::Arc::unwrap_or_clone(record)
}

#[test]
fn whole_stream_is_complete() {
    let script = |peer: &mut Peer| {
        peer.send(HEAD);
        peer.send(delta("a"));
        peer.send(delta("b"));
        peer.send(chunk(&format!("data: {USAGE}\n\ndata: [DONE]\n\n")));
        peer.send("0\r\n\r\n");
        peer.head();
    };
    let record = record(script, |mut client| {
        client.head();
        client.until("0\r\n\r\n");
    });
    assert_eq!(record.ending, Ending::Complete);
    assert_eq!(record.status, 200);
    assert_eq!(&*record.identity.model, "m");
    assert_eq!(record.tokens.output(), 2);
    assert!(record.timing.first_token_ns.is_some());
}

#[test]
fn client_leaving_a_stream_is_an_abort() {
    let script = |peer: &mut Peer| {
        peer.send(HEAD);
        peer.send(delta("a"));
        peer.closed_after(crate::support::now());
    };
    let record = record(script, |mut client| {
        client.head();
        client.until("\n\n");
    });
    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!(record.tokens.output(), 1);
}

#[test]
fn client_leaving_before_the_head_is_an_abort() {
    let script = |peer: &mut Peer| {
        peer.closed_after(crate::support::now());
    };
    let record = record(script, |client| {
        std::thread::sleep(Duration::from_millis(20));
        drop(client);
    });
    assert_eq!(record.ending, Ending::ClientAbort);
    assert_eq!(record.status, 0);
}

#[test]
fn truncated_response_is_an_upstream_cut() {
    let script = |peer: &mut Peer| {
        peer.send(HEAD);
        peer.send(delta("a"));
    };
    let record = record(script, |mut client| {
        client.head();
        client.rest();
    });
    assert_eq!(record.ending, Ending::UpstreamCut);
    assert_eq!(record.tokens.output(), 1);
}

/// Vector 39: the count arrived, and the end mark never does.
#[test]
fn a_count_before_a_cut_is_kept() {
    // The upstream's connection fails; or the chunks end well, with trailers.
    for end in ["", "0\r\nX-T: v\r\n\r\n"] {
        let script = move |peer: &mut Peer| {
            peer.send(HEAD);
            peer.send(delta("a"));
            peer.send(chunk(&format!("data: {USAGE}\n\n")));
            peer.send(end);
        };
        let record = record(script, |mut client| {
            client.head();
            if end.is_empty() {
                client.rest();
            } else {
                client.until("\r\n0\r\n\r\n");
            }
        });
        assert_eq!(record.ending, Ending::UpstreamCut, "{end:?}");
        assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2), "{end:?}");
    }
}

#[test]
fn unreachable_upstream_is_a_proxy_error() {
    let record = record(|_| {}, |mut client| assert!(client.head().unwrap().contains("502")));
    assert_eq!(record.ending, Ending::ProxyError);
    assert_eq!(record.status, 502);
}

#[test]
fn body_with_its_length_is_complete() {
    let body = format!(
        r#"{{"choices":[{{"index":0,"message":{{"content":"hi"}},"finish_reason":"stop"}}],{}"#,
        &USAGE[14..]
    );
    let script = move |peer: &mut Peer| {
        let length = body.len();
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        ));
        peer.send(&body);
        peer.head();
    };
    let record = record(script, |mut client| {
        client.head();
        client.until("}}");
    });
    assert_eq!(record.ending, Ending::Complete);
    assert_eq!(record.tokens.output(), 2);
}

#[test]
fn client_wait_is_separate_from_gaps() {
    let script = |peer: &mut Peer| {
        peer.send(HEAD);
        let text = "x".repeat(60_000);
        for _ in 0..400 {
            peer.send(delta(&text));
        }
        peer.send(chunk(&format!("data: {USAGE}\n\ndata: [DONE]\n\n")));
        peer.send("0\r\n\r\n");
        peer.head();
    };
    let record = record(script, |mut client| {
        client.head();
        std::thread::sleep(Duration::from_millis(300));
        client.until("[DONE]");
        client.until("0\r\n\r\n");
    });
    assert_eq!(record.ending, Ending::Complete);
    let waited = Duration::from_nanos(record.timing.client_wait_ns);
    assert!(waited > Duration::from_millis(150), "{waited:?}");
}

#[test]
fn request_is_complete_before_its_upstream_connects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // The queue has one place, which is taken: the next connection waits until the listener accepts.
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let full = TcpStream::connect(address).unwrap();
    let proxy = Proxy::new(address);
    let mut client = proxy.connect();
    client.send(REQUEST);
    std::thread::sleep(Duration::from_millis(400));
    let upstream = std::thread::spawn(move || {
        let (taken, _) = listener.accept().unwrap();
        let mut peer = Peer::new(listener.accept().unwrap().0);
        peer.head();
        peer.exactly(28);
        peer.send(HEAD);
        peer.send(delta("a"));
        peer.send(chunk("data: [DONE]\n\n"));
        peer.send("0\r\n\r\n");
        drop(taken);
    });
    client.head();
    client.until("0\r\n\r\n");
    upstream.join().unwrap();
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    let first = Duration::from_nanos(record.timing.first_token_ns.unwrap());
    assert!(first >= Duration::from_millis(400), "{first:?}");
    drop(full);
}

#[test]
fn gauge_returns_whatever_the_upstream_claims() {
    let script = |peer: &mut Peer| {
        peer.send(HEAD);
        peer.send(delta("a"));
        let claim = r#"data: {"choices":[{"index":9,"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":9007199254740992}}"#;
        for _ in 0..2048 {
            peer.send(chunk(&format!("{claim}\n\n")));
        }
        peer.send("0\r\n\r\n");
        peer.head();
    };
    let upstream = Upstream::start(move |peer, _| {
        peer.head();
        peer.exactly(28);
        script(peer);
    });
    let proxy = Proxy::new(upstream.address);
    let mut client = proxy.connect();
    client.send(REQUEST);
    client.head();
    client.until("\r\n0\r\n\r\n");
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert_eq!((record.tokens.output(), record.usage_rejected), (1, 2048));
    assert_eq!(proxy.seen().seated, 0);
}

#[test]
fn failed_meter_costs_its_record_only() {
    let upstream = Upstream::start(|peer, _| {
        peer.head();
        peer.exactly(28);
        peer.send(HEAD);
        for _ in 0..5 {
            peer.send(delta("a"));
        }
        peer.send(chunk("data: [DONE]\n\n"));
        peer.send("0\r\n\r\n");
        peer.head();
    });
    let proxy = Proxy::new(upstream.address);
    proxy.seen().meter_panics = true;
    let mut client = proxy.connect();
    client.send(REQUEST);
    client.head();
    let body = client.until("0\r\n\r\n");
    assert_eq!(body.matches("\"content\":\"a\"").count(), 5, "{body}");
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
    assert_eq!(record.ending, Ending::ProxyError);
    let seen = proxy.seen();
    assert_eq!((&seen.lost[..], seen.seated), (&[relay::Dropped::Panic][..], 0));
}

/// Vertex AI's path to SGLang: its streams are SGLang's, and nothing is made up from other frames.
#[test]
fn streams_at_vertex_generate_are_sglangs() {
    const META: &str = r#"{"text":"ab","meta_info":{"id":"i","finish_reason":{"type":"stop"},"prompt_tokens":7,"completion_tokens":2}}"#;
    let answer = |kind: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    for (answer, tokens, known) in [
        (
            answer("text/event-stream", &format!("data: {META}\n\ndata: [DONE]\n\n")),
            (7, 2),
            Provenance::Reported,
        ),
        (answer("application/json", &format!(r#"{{"predictions":{META}}}"#)), (0, 0), Provenance::None),
    ] {
        let upstream = Upstream::start(move |peer, _| {
            let head = peer.head().unwrap();
            upstream_body(peer, &head);
            peer.send(&answer);
        });
        let proxy = Proxy::new(upstream.address);
        let mut client = proxy.connect();
        client.send("POST /vertex_generate HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
        let head = client.head().unwrap();
        upstream_body(&mut client, &head);
        let record = proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record;
        assert_eq!((record.tokens.input(), record.tokens.output()), tokens);
        assert_eq!(record.tokens.output_provenance, known);
    }
}
