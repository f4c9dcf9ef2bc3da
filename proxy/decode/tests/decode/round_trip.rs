//! Recorded bodies survive encoding and decoding in any slices, and agree with the libraries' one-shot
//! calls.

use decode::Coding;
use harness::Transcript;

use crate::encode::Encoding;
use crate::{Decoded, decode, decode_whole, noise};

/// Lengths of the slices that every body is fed in; the last means the whole body.
const STEPS: [usize; 5] = [1, 7, 64, 1000, usize::MAX];

#[test]
fn every_recording_survives_a_round_trip() {
    for transcript in Transcript::all() {
        for encoding in Encoding::ALL {
            let body = encoding.whole(&transcript.body);
            assert_eq!(encoding.decode_at_once(&body).as_ref(), Some(&transcript.body), "the oracle");
            for step in STEPS {
                // Byte by byte, a large body tests nothing that a small one does not.
                if step == 1 && transcript.body.len() > 20_000 {
                    continue;
                }
                let decoded = decode(encoding.coding(), body.chunks(step));
                let case = format!("{} as {encoding:?} in steps of {step}", transcript.name);
                assert_eq!(decoded.end, Ok(()), "{case}");
                assert!(decoded.plain == transcript.body, "{case}");
            }
        }
    }
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    let transcript = Transcript::named("vllm-0.32.0/chat-stream-usage");
    let frames: Vec<&[u8]> = transcript.body.chunks(97).take(12).collect();
    let plain = frames.concat();
    for encoding in Encoding::ALL {
        for body in [encoding.whole(&plain), encoding.flushed(&frames).concat()] {
            for at in 0..=body.len() {
                let (head, tail) = body.split_at(at);
                let decoded = decode(encoding.coding(), [head, tail].into_iter());
                assert_eq!(decoded.end, Ok(()), "{encoding:?} cut at {at}");
                assert!(decoded.plain == plain, "{encoding:?} cut at {at}");
            }
        }
    }
}

#[test]
fn incompressible_bodies_of_any_size_survive() {
    let piece = decode::limits::PIECE_MAX_BYTES;
    for length in [0, 1, piece - 1, piece, piece + 1, 4 * piece, 8 * piece, 1_000_000] {
        let plain = noise(length as u64, length);
        for encoding in Encoding::ALL {
            let body = encoding.whole(&plain);
            assert_eq!(encoding.decode_at_once(&body).as_ref(), Some(&plain), "the oracle");
            for step in [1000, usize::MAX] {
                let decoded = decode(encoding.coding(), body.chunks(step));
                assert_eq!(decoded.end, Ok(()), "{length} bytes as {encoding:?} in steps of {step}");
                assert!(decoded.plain == plain, "{length} bytes as {encoding:?} in steps of {step}");
            }
        }
    }
}

#[test]
fn several_members_or_frames_form_one_body() {
    let parts: [&[u8]; 4] = [b"data: one\n\n", b"", b"data: two\n\n", b"data: [DONE]\n\n"];
    let skippable: &[u8] = &[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for encoding in [Encoding::Gzip, Encoding::Zstd, Encoding::ZstdChecked] {
        let mut body: Vec<u8> = parts.iter().flat_map(|part| encoding.whole(part)).collect();
        if encoding != Encoding::Gzip {
            body = [skippable, &body, skippable].concat();
        }
        assert_eq!(encoding.decode_at_once(&body), Some(parts.concat()), "the oracle");
        for step in STEPS {
            let decoded = decode(encoding.coding(), body.chunks(step));
            assert_eq!(
                decoded,
                Decoded { plain: parts.concat(), end: Ok(()) },
                "{encoding:?} in steps of {step}"
            );
        }
    }
}

#[test]
fn gzip_headers_may_have_every_optional_field() {
    let plain = b"data: [DONE]\n\n";
    let deflated = Encoding::Gzip.whole(plain)[10..].to_vec();
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
fn an_empty_body_is_complete() {
    for encoding in Encoding::ALL {
        assert_eq!(
            decode(encoding.coding(), std::iter::empty()),
            Decoded { plain: vec![], end: Ok(()) },
            "{encoding:?}"
        );
        assert_eq!(
            decode_whole(encoding.coding(), b""),
            Decoded { plain: vec![], end: Ok(()) },
            "{encoding:?}"
        );
        let encoded = encoding.whole(b"");
        assert!(!encoded.is_empty());
        assert_eq!(
            decode_whole(encoding.coding(), &encoded),
            Decoded { plain: vec![], end: Ok(()) },
            "{encoding:?}"
        );
    }
}
