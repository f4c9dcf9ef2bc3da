//! Which bodies the meter can read; the client receives each unchanged.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use meter::{Ending, Provenance, Record, TokenType};
use relay::{Dropped, Passthrough};
use scan::Dialect;

use crate::support::{DEADLINE, Peer, Proxy, Upstream, eventually, upstream_body};

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const WHOLE: &str = r#"{"choices":[{"index":0,"message":{"content":"ab"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;

fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn stream() -> String {
    format!("{}{}{USAGE}{DONE}", delta("a"), delta("b"))
}

/// A server that answers each request with `fields` and `body`, with a proxy before it.
fn serving(fields: &str, body: impl Into<Vec<u8>>) -> Proxy {
    let body = Arc::new(body.into());
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    let upstream = Upstream::start(move |peer, _| {
        while let Some(asked) = peer.head() {
            upstream_body(peer, &asked);
            peer.send(&head);
            peer.send(&*body);
        }
    });
    Proxy::new(upstream.address)
}

/// Posts to `path`; returns the response body.
fn post(proxy: &Proxy, path: &str) -> Vec<u8> {
    let mut client = Peer::connect(proxy.address());
    client.send(format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 13\r\n\r\n{{\"model\":\"m\"}}"));
    let head = client.head().unwrap();
    upstream_body(&mut client, &head)
}

fn record(proxy: &Proxy) -> Record {
    Arc::unwrap_or_clone(proxy.inbox.recv_timeout(DEADLINE).unwrap().finished().unwrap().record)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for event in text.split_inclusive("\n\n") {
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn compressed_stream_is_read_in_a_copy() {
    let packed = gzip(&stream());
    let proxy = serving("Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n", packed.clone());
    assert_eq!(post(&proxy, "/v1/chat/completions"), packed);
    let record = record(&proxy);
    assert_eq!((record.tokens.input(), record.tokens.output()), (7, 2));
    assert_eq!(record.tokens.output_provenance, Provenance::Reported);
    assert_eq!(record.ending, Ending::Complete);
    assert_eq!(proxy.seen().passed, []);
}

#[test]
fn compressed_body_is_read_in_a_copy() {
    let packed = gzip(WHOLE);
    let proxy = serving("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", packed.clone());
    assert_eq!(post(&proxy, "/v1/chat/completions"), packed);
    assert_eq!(record(&proxy).tokens.output(), 2);
}

#[test]
fn unknown_coding_is_not_read() {
    let proxy = serving("Content-Type: text/event-stream\r\nContent-Encoding: compress\r\n", stream());
    assert_eq!(post(&proxy, "/v1/chat/completions"), stream().into_bytes());
    let record = record(&proxy);
    assert_eq!(record.tokens.output_provenance, Provenance::None);
    assert_eq!(record.ending, Ending::Complete);
    assert_eq!(proxy.seen().passed, [Passthrough::Encoding]);
}

#[test]
fn decompression_bomb_is_given_up() {
    let packed = gzip(&format!("{}: {}\n\n{USAGE}", delta("a"), " ".repeat(64 << 20)));
    let proxy = serving("Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n", packed.clone());
    assert_eq!(post(&proxy, "/v1/chat/completions"), packed);
    let record = record(&proxy);
    assert_eq!(record.tokens.output_provenance, Provenance::None, "a part of the count is no count");
    eventually("it is counted", || proxy.seen().lost == [Dropped::Decoding]);
}

#[test]
fn missing_content_type_is_detected() {
    for fields in ["", "Content-Type: text/plain; charset=utf-8\r\n"] {
        let proxy = serving(fields, stream());
        post(&proxy, "/v1/chat/completions");
        let streamed = record(&proxy);
        assert!(streamed.streamed && streamed.timing.first_token_ns.is_some(), "{fields}");
        assert_eq!(streamed.tokens.output(), 2, "{fields}");
        assert_eq!(streamed.ending, Ending::Complete, "{fields}");

        let proxy = serving(fields, WHOLE);
        post(&proxy, "/v1/chat/completions");
        let whole = record(&proxy);
        assert!(!whole.streamed, "{fields}");
        assert_eq!(whole.tokens.output(), 2, "{fields}");
    }
    let proxy = serving("Content-Type: text/plain\r\n", "once upon a {\"usage\":{}}");
    assert_eq!(post(&proxy, "/v1/chat/completions"), b"once upon a {\"usage\":{}}");
    assert_eq!(record(&proxy).tokens.output_provenance, Provenance::None);
}

#[test]
fn stream_of_unknown_shape_is_counted_by_frames() {
    let proxy = serving("Content-Type: application/json\r\n", "{\"done\":true}");
    assert_eq!(post(&proxy, "/v1/load_lora_adapter"), b"{\"done\":true}");
    eventually("the in-flight gauge is zero", || proxy.seen().seated == 0);
    assert_eq!(proxy.seen().passed, [Passthrough::Path]);
    assert!(proxy.inbox.try_recv().is_err(), "no record without inference");

    let proxy = serving("Content-Type: text/event-stream\r\n", "data: x\n\ndata: y\n\n");
    post(&proxy, "/v9/dream");
    let record = record(&proxy);
    assert_eq!(record.identity.dialect, Dialect::Unknown);
    assert_eq!(&*record.identity.model, "m");
    assert_eq!(record.ending, Ending::Complete);
}

#[test]
fn replayed_stream_is_not_counted_again() {
    let proxy = serving("Content-Type: text/event-stream\r\n", stream());
    for path in ["/v1/responses/resp_1?stream=true&starting_after=3", "/v1/stream?conv_id=7"] {
        let mut client = proxy.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let head = client.head().unwrap();
        assert_eq!(upstream_body(&mut client, &head), stream().into_bytes());
    }
    eventually("both are noted", || proxy.seen().passed == [Passthrough::Replay; 2]);
    assert!(proxy.inbox.try_recv().is_err());
}

#[test]
fn counts_in_the_head_are_read() {
    let fields = "Content-Type: application/json\r\nx-prompt-tokens: 5\r\nx-generated-tokens: 3\r\nx-queue-time: 12\r\n";
    let proxy = serving(fields, r#"{"generated_text":"A red ox"}"#);
    proxy.running.profiles()[0].kind(relay::ServerKind::Tgi);
    post(&proxy, "/generate");
    let tgi = record(&proxy);
    assert_eq!(tgi.identity.dialect, Dialect::Tgi);
    assert_eq!(&*tgi.identity.provider, "tgi");
    assert_eq!((tgi.tokens.input(), tgi.tokens.output()), (5, 3));
    assert_eq!(tgi.timing.server().queue_ns, Some(12_000_000));
}

#[test]
fn path_may_name_the_model() {
    let proxy = serving("Content-Type: text/event-stream\r\n", "data: {\"text_output\":\"a\"}\n\n");
    let mut client = proxy.connect();
    client
        .send("POST /v2/models/ensemble/generate_stream HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
    let head = client.head().unwrap();
    upstream_body(&mut client, &head);
    let triton = record(&proxy);
    assert_eq!((&*triton.identity.model, triton.identity.dialect), ("ensemble", Dialect::Triton));
    assert_eq!(
        triton.ending,
        if triton.tokens.of(TokenType::Output) > 0 { Ending::Complete } else { Ending::NoOutput }
    );
}

/// A process that did not see the answer generated (another one, or one before a restart) does not count it.
#[test]
fn poll_after_a_restart_counts_nothing() {
    const ANSWER: &str = r#"{"id":"r-1","model":"m","usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let sent = |proxy: &Proxy, request: &str| {
        let mut client = Peer::connect(proxy.address());
        client.send(request);
        let head = client.head().unwrap();
        upstream_body(&mut client, &head);
    };
    let posted = |target: &str, body: &str| {
        format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let before = serving("Content-Type: application/json\r\n", ANSWER);
    sent(&before, &posted("/v1/chat/completions", r#"{"model":"m","messages":[]}"#));
    assert_eq!(record(&before).tokens.output(), 2);
    for poll in [
        posted("/v1/jobs/r-1", "{}"),
        posted("/v1/jobs/r-1/result", ""),
        posted("/v1/jobs/fetch?id=r-1", "{}"),
        posted("/v1/jobs/fetch", r#"{"model":"m","id":"r-1"}"#),
        posted("/v1/jobs/fetch", r#"{"jobs":[{"id":"r-0"},{"id":"r-1"}]}"#),
        posted("/v1/jobs/r-1", "{}").replace("POST", "PUT"),
        posted("/v1/jobs/fetch", r#"{"id":"r-1"}"#).replace("POST", "GET"),
    ] {
        let after = serving("Content-Type: application/json\r\n", ANSWER);
        sent(&after, &poll);
        eventually(&poll, || after.seen().passed == [Passthrough::Replay]);
        assert!(after.inbox.try_recv().is_err() && after.seen().seated == 0, "{poll}");
    }
    for (poll, reason) in
        [("/v1/chat/completions/r-1", Passthrough::Path), ("/v1/responses/r-1", Passthrough::Replay)]
    {
        let after = serving("Content-Type: application/json\r\n", ANSWER);
        sent(&after, &format!("GET {poll} HTTP/1.1\r\nHost: h\r\n\r\n"));
        eventually(poll, || after.seen().passed == [reason]);
        assert!(after.inbox.try_recv().is_err(), "{poll}");
    }
}

/// A poll for an answer is no run: the answer counts once, whoever counted it first.
#[test]
fn polled_answer_counts_once() {
    const ANSWER: &str = r#"{"id":"r-1","model":"m","usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let run = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 28\r\n\r\n{{\"model\":\"m\",\"messages\":[]}} "
        )
    };
    for first in [None, Some("/v1/chat/completions"), Some("/v1/own")] {
        let proxy = serving("Content-Type: application/json\r\n", ANSWER);
        if let Some(path) = first {
            let mut client = Peer::connect(proxy.address());
            client.send(run(path));
            let head = client.head().unwrap();
            upstream_body(&mut client, &head);
        }
        for _ in 0..3 {
            post(&proxy, "/v1/jobs/fetch");
        }
        assert_eq!(record(&proxy).tokens.output(), 2, "{first:?}");
        let replays = if first.is_none() { 2 } else { 3 };
        eventually("the others are replays", || proxy.seen().passed == vec![Passthrough::Replay; replays]);
        assert!(proxy.inbox.try_recv().is_err() && proxy.seen().seated == 0, "{first:?}");
    }
    // A run counts each time, even if the client chooses its id.
    let proxy = serving("Content-Type: application/json\r\n", ANSWER);
    for path in ["/v1/chat/completions", "/v1\\chat/completions", "/v1/own"] {
        for _ in 0..2 {
            let mut client = Peer::connect(proxy.address());
            client.send(run(path));
            let head = client.head().unwrap();
            upstream_body(&mut client, &head);
            assert_eq!(record(&proxy).tokens.output(), 2, "{path}");
        }
    }
    assert_eq!(proxy.seen().passed, []);
}
