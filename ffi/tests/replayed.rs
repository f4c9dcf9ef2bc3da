//! The recorded exchanges, fed from C one byte at a time, give the records that Rust makes of them.

use std::process::Command;

use harness::Transcript;
use harness::replay::{Pieces, replay};
use serde_json::{Map, Value};
use tokenmeter_ffi::record_json;

use crate::toolchain::Language::C11;
use crate::toolchain::{compile, run_with};

/// Values that the host gives, that are random, or that the replay does not read.
const NOT_COMPARED: [&str; 10] = [
    "service_tier",
    "id",
    "started_unix_ns",
    "ended_unix_ns",
    "upstream",
    "provider",
    "concurrency",
    "unpriced",
    "tenant",
    "request_id",
];

fn input(transcripts: &[Transcript]) -> Vec<u8> {
    let mut input = Vec::new();
    let bytes = |input: &mut Vec<u8>, bytes: &[u8]| {
        input.extend(length(bytes.len()));
        input.extend(bytes);
    };
    for transcript in transcripts {
        bytes(&mut input, b"POST");
        bytes(&mut input, transcript.path.as_bytes());
        bytes(&mut input, &transcript.request);
        input.extend(u32::from(transcript.status).to_ne_bytes());
        let content_type: &[u8] = match transcript.framing {
            scan::Framing::Json | scan::Framing::Messages => b"application/json",
            scan::Framing::EventStream => b"application/vnd.amazon.eventstream",
            scan::Framing::Sse => b"text/event-stream",
            scan::Framing::Ndjson => b"application/x-ndjson",
        };
        bytes(&mut input, content_type);
        bytes(&mut input, &transcript.body);
        let reads = transcript.reads();
        input.extend(length(reads.len()));
        let mut end = 0;
        for (us, slice) in reads {
            end += slice.len();
            input.extend(length(end));
            input.extend((us * 1000).to_ne_bytes());
        }
        let close: u32 = match (transcript.whole, transcript.client_left) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        input.extend(close.to_ne_bytes());
        let ended = transcript.arrivals.last().map_or(0, |arrival| arrival.us);
        input.extend((ended * 1000).to_ne_bytes());
    }
    input
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).expect("a recorded body is short").to_ne_bytes()
}

fn comparable(json: &str) -> Map<String, Value> {
    let mut all: Map<String, Value> = serde_json::from_str(json).expect("a record is JSON");
    NOT_COMPARED.iter().for_each(|name| drop(all.remove(*name)));
    all
}

#[test]
fn records_from_c_equal_those_from_rust() {
    let transcripts = Transcript::all();
    let program = compile("replay", C11, &[]);
    let printed = run_with(&mut Command::new(&program), input(&transcripts));
    let mut wrong = Vec::new();
    for (transcript, line) in transcripts.iter().zip(printed.lines()) {
        let expected = comparable(&record_json(&replay(transcript, Pieces::Reads)));
        let got = comparable(line);
        if got != expected {
            wrong.push(format!("{}\n  C    {got:?}\n  Rust {expected:?}", transcript.name));
        }
    }
    assert_eq!(printed.lines().count(), transcripts.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
