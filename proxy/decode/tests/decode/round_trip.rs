//! Recorded bodies come out as they went in, however they are cut, and as the libraries' one-shot
//! calls say.

use decode::Coding;
use harness::Transcript;

use crate::encode::Way;
use crate::{Decoded, decode, decode_whole, noise};

/// Slices every body is fed in; the last is "whole".
const STEPS: [usize; 5] = [1, 7, 64, 1000, usize::MAX];

#[test]
fn every_recording_comes_out_as_it_went_in() {
    for transcript in Transcript::all() {
        for way in Way::ALL {
            let body = way.whole(&transcript.body);
            assert_eq!(way.decode_at_once(&body).as_ref(), Some(&transcript.body), "the twin");
            for step in STEPS {
                // Byte by byte, half a megabyte times six says nothing more than a small one.
                if step == 1 && transcript.body.len() > 20_000 {
                    continue;
                }
                let decoded = decode(way.coding(), body.chunks(step));
                let case = format!("{} as {way:?} in steps of {step}", transcript.name);
                assert_eq!(decoded.end, Ok(()), "{case}");
                assert!(decoded.plain == transcript.body, "{case}");
            }
        }
    }
}

#[test]
fn a_cut_anywhere_changes_nothing() {
    let transcript = Transcript::named("vllm-0.32.0/chat-stream-usage");
    let frames: Vec<&[u8]> = transcript.body.chunks(97).take(12).collect();
    let plain = frames.concat();
    for way in Way::ALL {
        for body in [way.whole(&plain), way.flushed(&frames).concat()] {
            for at in 0..=body.len() {
                let (head, tail) = body.split_at(at);
                let decoded = decode(way.coding(), [head, tail].into_iter());
                assert_eq!(decoded.end, Ok(()), "{way:?} cut at {at}");
                assert!(decoded.plain == plain, "{way:?} cut at {at}");
            }
        }
    }
}

#[test]
fn what_fills_pieces_exactly_and_what_does_not_compress() {
    let piece = decode::limits::PIECE_BYTES;
    for length in [0, 1, piece - 1, piece, piece + 1, 4 * piece, 8 * piece, 1_000_000] {
        let plain = noise(length as u64, length);
        for way in Way::ALL {
            let body = way.whole(&plain);
            assert_eq!(way.decode_at_once(&body).as_ref(), Some(&plain), "the twin");
            for step in [1000, usize::MAX] {
                let decoded = decode(way.coding(), body.chunks(step));
                assert_eq!(decoded.end, Ok(()), "{length} bytes as {way:?} in steps of {step}");
                assert!(decoded.plain == plain, "{length} bytes as {way:?} in steps of {step}");
            }
        }
    }
}

#[test]
fn members_and_frames_may_follow_each_other() {
    let parts: [&[u8]; 4] = [b"data: one\n\n", b"", b"data: two\n\n", b"data: [DONE]\n\n"];
    let skippable: &[u8] = &[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for way in [Way::Gzip, Way::Zstd, Way::ZstdChecked] {
        let mut body: Vec<u8> = parts.iter().flat_map(|part| way.whole(part)).collect();
        if way != Way::Gzip {
            body = [skippable, &body, skippable].concat();
        }
        assert_eq!(way.decode_at_once(&body), Some(parts.concat()), "the twin");
        for step in STEPS {
            let decoded = decode(way.coding(), body.chunks(step));
            assert_eq!(decoded, Decoded { plain: parts.concat(), end: Ok(()) }, "{way:?} in steps of {step}");
        }
    }
}

#[test]
fn gzip_headers_with_every_optional_field() {
    let plain = b"data: [DONE]\n\n";
    let deflated = Way::Gzip.whole(plain)[10..].to_vec();
    let fields: [(u8, &[u8]); 4] =
        [(4, &[5, 0, b'e', b'x', b't', b'r', b'a']), (8, b"name\0"), (16, b"comment\0"), (2, &[1, 2])];
    for chosen in 0..16_u8 {
        let present = fields.iter().enumerate().filter(|(index, _)| chosen & 1 << index != 0);
        let flags = present.clone().fold(0, |flags, (_, (bit, _))| flags | bit);
        let mut body = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255];
        present.for_each(|(_, (_, field))| body.extend_from_slice(field));
        body.extend_from_slice(&deflated);
        for step in STEPS {
            let decoded = decode(Coding::Gzip, body.chunks(step));
            assert_eq!(decoded, Decoded { plain: plain.to_vec(), end: Ok(()) }, "flags {flags:#x}");
        }
    }
}

#[test]
fn an_empty_body_is_whole() {
    for way in Way::ALL {
        assert_eq!(
            decode(way.coding(), std::iter::empty()),
            Decoded { plain: vec![], end: Ok(()) },
            "{way:?}"
        );
        assert_eq!(decode_whole(way.coding(), b""), Decoded { plain: vec![], end: Ok(()) }, "{way:?}");
        let encoded = way.whole(b"");
        assert!(!encoded.is_empty());
        assert_eq!(decode_whole(way.coding(), &encoded), Decoded { plain: vec![], end: Ok(()) }, "{way:?}");
    }
}
