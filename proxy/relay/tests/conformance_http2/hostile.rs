//! Servers that violate the protocol, or flood their client: the request fails, and the memory is bounded.

use std::process::Command;
use std::time::Duration;

use meter::Ending;

use super::{CHAT, GET, ask, proxy};
use crate::support::http2_server::*;
use crate::support::wires::Wires;
use crate::support::{DEADLINE, eventually};

crate::support::wires::table! {
    (http2_upstreams, "these servers use HTTP/2 themselves"):
        oversized_heads_are_answered_502,
        invalid_answers_are_answered_502,
        body_of_another_length_is_truncated,
        equal_lengths_become_one,
        violations_within_an_answer_end_it_as_the_servers_fault,
        server_without_streams_holds_requests_only,
        garbage_is_answered_502;
    (http2_upstreams, slow, "these servers use HTTP/2 themselves"):
        floods_end_and_take_no_memory;
}

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

/// A client may read two lengths, even equal ones, in another way than its proxy.
fn equal_lengths_become_one() {
    let server = Http2Server::start(move |mut frames, _| async move {
        frames.begin(&[]).await;
        let (stream, _) = frames.request().await.unwrap();
        let lengths = field("content-length", "2").repeat(2);
        head(&mut frames, stream, &[OK, &lengths].concat()).await;
        frames.send(DATA, END_STREAM, stream, b"ok").await;
        while frames.next().await.is_some() {}
    });
    let proxy = proxy(server.address);
    let (head, body) = ask(&mut proxy.connect(), GET);
    assert_eq!((head.matches("content-length: 2\r\n").count(), &*body), (1, "ok"), "{head}");
}

/// The bytes of a frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A server that breaks the protocol within an answer, or after it: the exchange has its record, and the next request
/// succeeds.
fn violations_within_an_answer_end_it_as_the_servers_fault() {
    const PUSH_PROMISE: u8 = 5;
    let head = frame(HEADERS, END_HEADERS, 1, &[OK, &field("content-type", "application/json")].concat());
    let whole = br#"{"id":"c","model":"m","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let begun = [&head[..], &frame(DATA, 0, 1, &whole[..40])].concat();
    let ended = [&head[..], &frame(DATA, END_STREAM, 1, whole)].concat();
    let most = frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes());
    // A field of 3,900 bytes that is indexed, and then named again and again.
    let bomb = [&[0x40][..], &field("x", &"v".repeat(3_900))[1..], &[0xbe; 12_000]].concat();
    let trailers = |block: &[u8]| frame(HEADERS, END_HEADERS | END_STREAM, 1, block);
    let oversized = [&[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1][..], &[0; 20_000]].concat();
    for (name, first, attack, ending) in [
        (
            "data beyond the window",
            &begun,
            frame(DATA, 0, 1, &[b' '; 16 << 10]).repeat(1_000),
            Ending::UpstreamCut,
        ),
        ("windows beyond the largest", &begun, most.repeat(2), Ending::UpstreamCut),
        (
            "trailers without an end",
            &begun,
            [frame(HEADERS, END_STREAM, 1, b""), frame(CONTINUATION, 0, 1, b"").repeat(50_000)].concat(),
            Ending::UpstreamCut,
        ),
        ("a bomb of trailers", &begun, trailers(&bomb), Ending::UpstreamCut),
        ("an unknown index", &begun, trailers(&[0xff, 0xff, 0xff, 0x7f]), Ending::UpstreamCut),
        ("a table beyond its size", &begun, trailers(&[0x3f, 0xff, 0xff, 0x7f]), Ending::UpstreamCut),
        ("a frame of 16 MiB", &begun, oversized, Ending::UpstreamCut),
        (
            "a push",
            &begun,
            frame(PUSH_PROMISE, END_HEADERS, 1, &[&2_u32.to_be_bytes()[..], OK].concat()),
            Ending::UpstreamCut,
        ),
        ("a reset of no stream", &begun, frame(RST_STREAM, 0, 99, &CANCEL), Ending::UpstreamCut),
        (
            "settings out of range",
            &begun,
            frame(SETTINGS, 0, 0, &[0, 4, 255, 255, 255, 255]),
            Ending::UpstreamCut,
        ),
        ("a short ping", &begun, frame(PING, 0, 0, &[0; 7]), Ending::UpstreamCut),
        ("data of stream 0", &begun, frame(DATA, 0, 0, b"x"), Ending::UpstreamCut),
        ("data after the end", &ended, frame(DATA, 0, 1, &[b' '; 1 << 10]).repeat(5_000), Ending::Complete),
        ("trailers after the end", &ended, trailers(OK).repeat(5_000), Ending::Complete),
    ] {
        let first = first.clone();
        let server = Http2Server::start(move |mut frames, number| {
            let (first, attack) = (first.clone(), attack.clone());
            async move {
                frames.begin(&[]).await;
                if number == 0 {
                    frames.request().await.unwrap();
                    frames.raw(&first).await;
                    frames.raw(&attack).await;
                }
                frames.answer_all("ok").await;
            }
        });
        let proxy = proxy(server.address);
        let mut client = proxy.connect();
        client.send(CHAT);
        // It reads nothing before the exchange is over.
        let record = crate::usage::record(&proxy);
        assert_eq!(record.ending, ending, "{name}");
        drop(client);
        eventually(name, || ask(&mut proxy.connect(), GET).0.starts_with("HTTP/1.1 200"));
        eventually("the requests have ended", || proxy.running.in_flight() == 0);
    }
}

/// A server that allows no stream holds its requests until it does, or until their clients leave.
fn server_without_streams_holds_requests_only() {
    let (go, wait) = tokio::sync::watch::channel(false);
    let server = Http2Server::start(move |mut frames, _| {
        let mut wait = wait.clone();
        async move {
            frames.begin(&[(3, 0)]).await;
            wait.wait_for(|is_over| *is_over).await.unwrap();
            frames.send(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]).await;
            frames.answer_all("ok").await;
        }
    });
    let proxy = proxy(server.address);
    let mut clients: Vec<_> = (0..8).map(|_| proxy.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(GET));
    eventually("all wait", || proxy.running.in_flight() == 8);
    clients.truncate(4);
    eventually("half of them left", || proxy.running.in_flight() == 4);
    go.send(true).unwrap();
    for mut client in clients {
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    assert!(server.connections() <= 8, "{}", server.connections());
}

/// A flood ends its request or connection, or is answered without memory; the next request succeeds. A process of its
/// own measures its memory.
fn floods_end_and_take_no_memory() {
    const ALONE: &str = "TOKENMETER_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let (_, module) = module_path!().split_once("::").unwrap();
        let (test, row) = (format!("{module}::floods_end_and_take_no_memory"), Wires::current().name);
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone
            .args(["--include-ignored", "--exact"])
            .args([format!("{test}::{row}"), format!("{test}::long::{row}")]);
        let ended = alone.env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let floods = [
        ("pings", frame(PING, 0, 0, &[0; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1])),
        ("window updates", frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        ("empty data", [frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 0, 1, b"")].concat()),
        ("padding", [frame(HEADERS, END_HEADERS, 1, OK), frame(DATA, 8, 1, &[255; 256]).repeat(50)].concat()),
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
