//! Servers that violate the protocol, or flood their client: the request fails, and the memory is bounded.

use std::process::Command;
use std::time::Duration;

use super::{GET, ask, proxy};
use crate::support::http2_server::*;
use crate::support::{DEADLINE, eventually};

/// A literal field without indexing.
fn field(name: &str, value: &str) -> Vec<u8> {
    assert!(name.len() < 127);
    let mut field = vec![0, u8::try_from(name.len()).unwrap()];
    field.extend(name.as_bytes());
    // The length of the value: an integer with a prefix of 7 bits (RFC 7541 §5.1).
    let mut left = value.len();
    if left < 127 {
        field.push(u8::try_from(left).unwrap());
    } else {
        field.push(127);
        left -= 127;
        while left >= 128 {
            field.push(u8::try_from(left % 128).unwrap() | 128);
            left /= 128;
        }
        field.push(u8::try_from(left).unwrap());
    }
    field.extend(value.as_bytes());
    field
}

/// Sends a header block in frames of 16 KiB.
async fn head(frames: &mut Frames, stream: u32, block: &[u8]) {
    let pieces: Vec<_> = block.chunks(16 << 10).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let kind = if index == 0 { HEADERS } else { CONTINUATION };
        let flags = if index + 1 == pieces.len() { END_HEADERS } else { 0 };
        frames.send(kind, flags, stream, piece).await;
    }
}

#[test]
fn oversized_heads_are_answered_502() {
    let fields: Vec<u8> = (0..101).flat_map(|n| field(&format!("x-{n}"), "v")).collect();
    for (block, code) in [
        (fields, "a head over 64 KiB or 100 fields"),
        (field("x", &"v".repeat(70_000)), "a head over 64 KiB or 100 fields"),
        (field("x", &"v".repeat(200_000)), "upstream_invalid"),
    ] {
        let server = Http2Server::start(move |mut frames, _| {
            let block = [OK, &block].concat();
            async move {
                frames.begin(&[]).await;
                let (stream, _) = frames.request().await.unwrap();
                head(&mut frames, stream, &block).await;
                frames.answer_all("ok").await;
            }
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        let (head, body) = ask(&mut client, GET);
        assert!(head.starts_with("HTTP/1.1 502") && body.contains(code), "{head}{body}");
    }
}

#[test]
fn invalid_answers_are_answered_502() {
    for block in [
        // `:status: 101`, which HTTP/2 does not have.
        b"\x08\x03101".to_vec(),
        field("connection", "close"),
        [OK, &field("transfer-encoding", "chunked")].concat(),
        [OK, &field("content-length", "-1")].concat(),
        [OK, &field("content-length", "1"), &field("content-length", "2")].concat(),
        [OK, &field("X-Upper", "v")].concat(),
        field("no-status", "v"),
    ] {
        let name = format!("{block:?}");
        let server = Http2Server::start(move |mut frames, _| {
            let block = block.clone();
            async move {
                frames.begin(&[]).await;
                let (stream, _) = frames.request().await.unwrap();
                head(&mut frames, stream, &block).await;
                while frames.next().await.is_some() {}
            }
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        let (head, body) = ask(&mut client, GET);
        assert!(head.starts_with("HTTP/1.1 502") && body.contains("upstream_invalid"), "{name} {head}{body}");
    }
}

#[test]
fn body_of_another_length_is_truncated() {
    for (length, body) in [("10", "five!"), ("3", "five!")] {
        let server = Http2Server::start(move |mut frames, _| async move {
            frames.begin(&[]).await;
            let (stream, _) = frames.request().await.unwrap();
            head(&mut frames, stream, &[OK, &field("content-length", length)].concat()).await;
            frames.send(DATA, END_STREAM, stream, body.as_bytes()).await;
            frames.answer_all("ok").await;
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        client.send(GET);
        client.head();
        let rest = client.rest();
        assert!(rest.len() < length.parse().unwrap(), "{length} {rest}");
    }
}

/// A flood ends its request or connection, or is answered without memory; the next request succeeds. A process of its
/// own measures its memory.
#[test]
#[ignore = "waits for seconds"]
fn floods_end_and_take_no_memory() {
    const ALONE: &str = "TOKENMETER_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::floods_end_and_take_no_memory");
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let ended = alone.args(["--include-ignored", "--exact", &name]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let floods = [
        ("pings", frame(PING, 0, 0, &[0; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1])),
        ("window updates", frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        ("empty data", [frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 0, 1, b"")].concat()),
        ("resets", frame(RST_STREAM, 0, 1, &CANCEL)),
        ("continuations", [frame(HEADERS, 0, 1, OK), frame(CONTINUATION, 0, 1, b"").repeat(100)].concat()),
        ("hints", frame(HEADERS, END_HEADERS, 1, b"\x08\x03103")),
        ("unknown frames", frame(99, 0, 1, &[0; 100])),
        ("priorities", frame(2, 0, 1, &[0; 5])),
    ];
    for (name, flood) in floods {
        let server = Http2Server::start(move |mut frames, number| {
            let flood = flood.repeat(1000);
            async move {
                frames.begin(&[]).await;
                if number > 0 {
                    return frames.answer_all("ok").await;
                }
                frames.request().await.unwrap();
                // It reads nothing, so acknowledgements fill the sockets.
                let sending = async { while frames.raw(&flood).await {} };
                let _ = tokio::time::timeout(Duration::from_secs(2), sending).await;
            }
        });
        let before = resident();
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        client.send(GET);
        let answer = loop {
            match client.head().unwrap() {
                hint if hint.starts_with("HTTP/1.1 103") => {}
                answer => break answer,
            }
        };
        assert!(answer.starts_with("HTTP/1.1 502") || answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        drop(client);
        eventually("the request has ended", || proxy.running.in_flight() == 0);
        // The flood may last on the same connection.
        eventually(name, || ask(&mut proxy.connect(), GET).0.starts_with("HTTP/1.1 200"));
        let grown = resident().saturating_sub(before);
        assert!(grown < 64 << 20, "{name}: {grown} bytes");
    }
}

/// The process's resident memory, bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn garbage_is_answered_502() {
    for garbage in ["HTTP/1.1 400 Bad Request\r\n\r\n".repeat(100), "\0".repeat(1000)] {
        let server = Http2Server::start(move |mut frames, _| {
            let garbage = garbage.clone();
            async move {
                frames.raw(garbage.as_bytes()).await;
                tokio::time::sleep(DEADLINE).await;
            }
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        let (head, body) = ask(&mut client, GET);
        assert!(head.starts_with("HTTP/1.1 502") && body.contains("upstream_invalid"), "{head}{body}");
    }
}
