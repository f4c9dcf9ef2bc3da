//! What the engine tells an exchange, seen in the record that comes out of it.

use std::time::Duration;

use meter::{Ending, Record};

use crate::support::{DEADLINE, Peer, Proxy, Upstream};

const REQUEST: &str = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{\"model\":\"m\",\"stream\": true}";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}"#;

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn delta(text: &str) -> String {
    chunk(&format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"))
}

/// What comes out when a client does `act` with an upstream that does `script`.
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
    let record = proxy.inbox.recv_timeout(DEADLINE).unwrap();
    assert!(proxy.inbox.recv_timeout(Duration::from_millis(50)).is_err(), "one request, one record");
    assert!(proxy.seen().lost.is_empty());
    record
}

#[test]
fn a_whole_stream() {
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
fn a_client_that_leaves() {
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
fn a_client_that_leaves_before_the_head() {
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
fn an_upstream_that_breaks_off() {
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

#[test]
fn an_upstream_that_gives_no_answer() {
    let record = record(|_| {}, |mut client| assert!(client.head().unwrap().contains("502")));
    assert_eq!(record.ending, Ending::ProxyError);
    assert_eq!(record.status, 502);
}

#[test]
fn an_answer_with_its_length() {
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
fn a_slow_client_is_not_a_slow_server() {
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
