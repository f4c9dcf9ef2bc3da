//! Writes seeds for the fuzz targets from the recorded exchanges: `fuzz-seeds FOLDER` creates one folder per target in it.
//! Bodies are cut to their first frames, so that one run costs little.

use std::path::Path;
use std::{env, fs, io};

use harness::dice::Dice;
use harness::{Transcript, event_stream, maker};
use scan::{Dialect, Framing};

/// Bytes of a seed: a few frames.
const SEED_BYTES: usize = 1500;

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).expect("a folder to write to");
    let folder = Path::new(&folder);
    for target in [
        "sse",
        "json",
        "dialect",
        "usage",
        "websocket",
        "proxy_header",
        "event_stream",
        "http1_request",
        "http1_response",
        "http1_chunks",
        "http1_pair",
    ] {
        fs::create_dir_all(folder.join(target))?;
    }
    for transcript in Transcript::all() {
        let name = transcript.name.replace(['/', '#'], "-");
        let body = &transcript.body[..transcript.body.len().min(SEED_BYTES)];
        let choice = Dialect::ALL.iter().position(|d| *d == transcript.dialect).unwrap_or(0);
        let seed = |body: &[u8]| [&[choice as u8], body].concat();
        if transcript.framing == Framing::Sse {
            fs::write(folder.join("sse").join(&name), seed(body))?;
            let end = &transcript.body[transcript.body.len() - body.len()..];
            fs::write(folder.join("sse").join(format!("{name}-end")), seed(end))?;
        } else {
            fs::write(folder.join("json").join(&name), seed(body))?;
        }
        if transcript.request.len() <= SEED_BYTES {
            let seed = [&[0], &transcript.request[..]].concat();
            fs::write(folder.join("json").join(format!("{name}-request")), &seed)?;
            fs::write(folder.join("usage").join(format!("{name}-request")), seed)?;
        }
        // The generator accepts any bytes as choices.
        let choices = &body[..body.len().min(512)];
        fs::write(folder.join("dialect").join(&name), choices)?;
        fs::write(folder.join("usage").join(&name), [&[0x80], choices].concat())?;
        let frames: Vec<u8> = body.chunks(120).flat_map(|text| frame(0x81, text)).collect();
        fs::write(folder.join("websocket").join(&name), frames)?;
    }
    for (number, header) in HEADERS.into_iter().enumerate() {
        fs::write(folder.join("proxy_header").join(number.to_string()), header)?;
    }
    for (target, message) in MESSAGES {
        let name = message.len().to_string();
        fs::write(folder.join(target).join(name), message)?;
    }
    for (number, (steps, parts)) in PAIRS.into_iter().enumerate() {
        let script = [&[steps.len() as u8], steps, &parts.map(str::as_bytes).join(&0xFE)].concat();
        fs::write(folder.join("http1_pair").join(number.to_string()), script)?;
    }
    made(folder)
}

/// Scripts of a pair of connections: their steps, the client's bytes, and two answers.
const PAIRS: [(&[u8], [&str; 3]); 6] = [
    (
        &[],
        [
            "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\na\r\ndata: {}\n\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ],
    ),
    (
        &[0x0A, 0x12, 0x08, 0x65, 0x61, 0x7F],
        [
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n05\r\nhello\r\n0\r\nx: y\r\n\r\n",
            "",
        ],
    ),
    (
        &[0x14, 0xE4, 0x74],
        [
            "POST /d HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\nhello",
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
            "",
        ],
    ),
    (
        &[0x1F, 0xC0, 0x7F, 0xC0],
        [
            "HEAD /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.0\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\nhello",
        ],
    ),
    (&[0x1F, 0x76, 0xE2, 0xE1], ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nhello", ""]),
    (
        &[0x1F, 0xE0],
        [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n{}\n",
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "",
        ],
    ),
];

/// Messages of HTTP/1.1, each of another length.
const MESSAGES: [(&str, &str); 8] = [
    ("http1_request", "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"),
    ("http1_request", "\r\nGET / HTTP/1.0\r\nConnection: keep-alive, te \r\nx:\r\n\r\n"),
    ("http1_request", "GET / HTTP/1.1\r\na : b\r\n c\n\r\n"),
    ("http1_response", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\na : b\r\n\r\n"),
    ("http1_response", "HTTP/1.0 404\nContent-Length: 5, 5\n\n"),
    ("http1_chunks", "5\r\nhello\r\nA;b=\"c\\\"\"\r\n0123456789\r\n0\r\n\r\n"),
    ("http1_chunks", "1 \r\nx\r\n00\r\na: b\r\nc:\r\n\r\nHTTP/1.1"),
    ("http1_chunks", "fffffffffffff\r\nx"),
];

/// Headers of the PROXY protocol.
const HEADERS: [&[u8]; 5] = [
    b"PROXY TCP4 192.0.2.7 10.0.0.1 8080 80\r\nGET / HTTP/1.1\r\n",
    b"PROXY TCP6 2001:db8::7 ::1 65535 0\r\n",
    b"PROXY UNKNOWN\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x1f\x90\0\x50",
    b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
];

/// A masked frame of at most 125 bytes, and a ping after it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let masked = payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]);
    let head = [first, 0x80 | payload.len() as u8, 1, 2, 3, 4];
    head.into_iter().chain(masked).chain([0x89, 0]).collect()
}

/// Generated bodies, because most dialects have no recordings.
fn made(folder: &Path) -> io::Result<()> {
    for (choice, dialect) in Dialect::ALL.into_iter().enumerate() {
        for number in 0..8_u8 {
            let entropy: Vec<u8> =
                (0..200_u8).map(|n| n.wrapping_mul(37).wrapping_add(number * 29)).collect();
            for (target, framing, high) in
                [("sse", Framing::Sse, 0), ("json", Framing::Json, 0), ("json", Framing::Ndjson, 0x80)]
            {
                let body = maker::body_of(&mut Dice::new(&entropy), dialect, framing).body;
                let name = format!("made-{}-{framing:?}-{number}", dialect.name());
                let messages =
                    [event_stream::message("e", false, &body), event_stream::wrapped(&body)].concat();
                fs::write(
                    folder.join("event_stream").join(&name),
                    [&[choice as u8], &messages[..]].concat(),
                )?;
                fs::write(folder.join(target).join(name), [&[choice as u8 | high], &body[..]].concat())?;
            }
        }
    }
    Ok(())
}
