//! A stream that its server flushes per frame keeps its timing: each frame comes out with the slice that
//! completes it.

use decode::Decoder;
use harness::Transcript;

use crate::encode::Encoding;

/// The frames of a recorded stream, each with its empty line.
fn frames(body: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\n\n") {
        let (frame, after) = rest.split_at(at + 2);
        frames.push(frame);
        rest = after;
    }
    assert!(rest.is_empty() && frames.len() > 10);
    frames
}

const STREAMS: [&str; 3] =
    ["vllm-0.32.0/chat-stream-usage", "vllm-0.32.0/chat-stream-long", "llamacpp-0.7.0/chat-stream-timings"];

#[test]
fn a_flushed_frame_comes_out_with_its_slice() {
    for name in STREAMS {
        let transcript = Transcript::named(name);
        let frames = frames(&transcript.body);
        for encoding in Encoding::ALL {
            let slices = encoding.flushed(&frames);
            let (last, slices) = slices.split_last().expect("an end");
            let mut decoder = Decoder::new(encoding.coding());
            for (index, (frame, slice)) in frames.iter().zip(slices).enumerate() {
                let mut plain = Vec::new();
                decoder.feed(slice, &mut |piece| plain.extend_from_slice(piece)).expect("a good body");
                assert!(plain == *frame, "{name} as {encoding:?}: frame {index}");
            }
            decoder.feed(last, &mut |piece| panic!("{} bytes late", piece.len())).expect("a good body");
            assert_eq!(decoder.end(), Ok(()), "{name} as {encoding:?}");
        }
    }
}

#[test]
fn flushed_frame_is_complete_with_its_last_byte() {
    let transcript = Transcript::named(STREAMS[0]);
    let frames = frames(&transcript.body);
    for encoding in Encoding::ALL {
        let mut decoder = Decoder::new(encoding.coding());
        for (frame, slice) in frames.iter().zip(encoding.flushed(&frames)) {
            let mut plain = Vec::new();
            for byte in slice.chunks(1) {
                decoder.feed(byte, &mut |piece| plain.extend_from_slice(piece)).expect("a good body");
            }
            assert!(plain == *frame, "{encoding:?}");
        }
    }
}

#[test]
fn recorded_streams_stay_below_the_ratio() {
    // The figures in the comment of `limits::MAX_RATIO`.
    for name in STREAMS {
        let body = Transcript::named(name).body;
        for encoding in Encoding::ALL {
            let whole = body.len() / encoding.whole(&body).len();
            let flushed = body.len() / encoding.flushed(&frames(&body)).concat().len();
            println!("{name} {encoding:?}: {whole} {flushed}");
            assert!(
                whole <= 60 && flushed <= 15,
                "{name} as {encoding:?}: {whole}:1 whole, {flushed}:1 flushed"
            );
        }
    }
}
