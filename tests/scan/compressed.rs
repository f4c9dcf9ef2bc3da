//! Compressed bodies: every vector and every recorded stream, in every coding and flushed after each frame, gives the
//! plain body's events, for any slices of the encoded bytes.

// The encoders are the decoder's; only the flushed ones are used here.
#[allow(dead_code, reason = "the decoder's own tests use the rest")]
#[path = "../../proxy/decode/tests/decode/encode.rs"]
mod encode;

use decode::Decoder;
use harness::{Seen, Transcript, cuts};
use scan::{Dialect, Framing, Scanner};

use crate::{streams, vectors};
use encode::Encoding;

/// Encoded bytes passed at a time.
const STEPS: [usize; 3] = [1, 7, usize::MAX];

#[test]
fn every_vector_gives_the_same() {
    let vectors: Vec<_> = vectors::all().chain(streams::all()).collect();
    assert!(vectors.len() > 150, "{}", vectors.len());
    for (name, dialect, framing, body, _) in vectors {
        for encoding in Encoding::ALL {
            says_the_same(name, *dialect, *framing, body.as_bytes(), encoding);
        }
    }
}

#[test]
fn every_recorded_stream_gives_the_same() {
    // Two spellings of `deflate` and the check sum of zstd make no difference to the events.
    let ways = [Encoding::Gzip, Encoding::Zlib, Encoding::Brotli, Encoding::Zstd];
    let streams: Vec<Transcript> =
        Transcript::all().into_iter().filter(|t| t.framing == Framing::Sse).collect();
    assert!(streams.len() > 50, "{}", streams.len());
    for Transcript { name, dialect, framing, body, .. } in &streams {
        for encoding in ways {
            says_the_same(name, *dialect, *framing, body, encoding);
        }
    }
}

fn says_the_same(name: &str, dialect: Dialect, framing: Framing, body: &[u8], encoding: Encoding) {
    let plain = cuts::in_steps(dialect, framing, body, usize::MAX);
    let encoded = encoding.flushed(&frames(framing, body)).concat();
    for step in STEPS {
        let seen = decoded(dialect, framing, &encoded, encoding, step);
        let difference = || cuts::first_difference(&plain, &seen);
        assert!(seen == plain, "{name}: {encoding:?} in steps of {step}: {}", difference());
    }
}

fn decoded(dialect: Dialect, framing: Framing, encoded: &[u8], encoding: Encoding, step: usize) -> Seen {
    let (mut scanner, mut seen) = (Scanner::new(dialect, framing), Seen::default());
    let mut decoder = Decoder::new(encoding.coding());
    for slice in encoded.chunks(step) {
        decoder.feed(slice, &mut |piece| scanner.feed(piece, &mut seen)).expect("the body is valid");
    }
    decoder.end().expect("the body is complete");
    seen.tail = Some(scanner.end(&mut seen));
    seen.model = scanner.names().model().to_owned();
    seen.id = scanner.names().id().to_owned();
    seen.tier = scanner.names().tier().to_owned();
    seen
}

/// The slices that a server flushes: up to and with a blank line, or the end of a line where a line is a frame. An
/// unstreamed body is one.
fn frames(framing: Framing, body: &[u8]) -> Vec<&[u8]> {
    let ends = |at: usize| match framing {
        Framing::Sse => [&b"\n\n"[..], b"\r\r", b"\r\n\r\n"].iter().any(|end| body[..at].ends_with(end)),
        Framing::Ndjson => body[..at].ends_with(b"\n"),
        Framing::Json | Framing::Messages | Framing::EventStream => false,
    };
    let mut frames = Vec::new();
    let mut from = 0;
    for at in (1..=body.len()).filter(|&at| ends(at) || at == body.len()) {
        frames.push(&body[from..at]);
        from = at;
    }
    frames
}
