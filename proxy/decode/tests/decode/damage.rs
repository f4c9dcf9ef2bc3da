//! Bodies that are cut off, damaged or not in the declared coding: the decodable part comes out, nothing
//! else, and the result is `Broken`.

use decode::{Coding, DecodeError};
use harness::Transcript;

use crate::encode::Encoding;
use crate::{Decoded, decode, decode_whole, noise};

#[test]
fn a_cut_body_yields_its_complete_part() {
    let transcript = Transcript::named("vllm-0.32.0/chat-stream-usage");
    let frames: Vec<&[u8]> = transcript.body.chunks(200).take(6).collect();
    let plain = frames.concat();
    for encoding in Encoding::ALL {
        let slices = encoding.flushed(&frames);
        let body = slices.concat();
        // Ends of the flushed slices, encoded and plain.
        let mut marks = vec![(0, 0)];
        for (slice, frame) in slices.iter().zip(&frames) {
            let (encoded, decoded) = marks[marks.len() - 1];
            marks.push((encoded + slice.len(), decoded + frame.len()));
        }
        for cut in 1..body.len() {
            for step in [1, usize::MAX] {
                let decoded = decode(encoding.coding(), body[..cut].chunks(step));
                let case = format!("{encoding:?} cut at {cut} of {} in steps of {step}", body.len());
                assert_eq!(decoded.end, Err(DecodeError::Broken), "{case}");
                assert!(plain.starts_with(&decoded.plain), "{case}");
                let flushed = marks.iter().rev().find(|(encoded, _)| *encoded <= cut).expect("0").1;
                assert!(decoded.plain.len() >= flushed, "{case}: {} of {flushed}", decoded.plain.len());
            }
        }
    }
}

#[test]
fn garbage_yields_nothing() {
    let table: [(Coding, &[u8]); 9] = [
        (Coding::Gzip, b"data: {\"choices\":[]}\n\n"),
        (Coding::Gzip, &[0x1f, 0x8b, 7]),
        (Coding::Gzip, &[0x1f, 0x8b, 8, 0x20]),
        (Coding::Gzip, &[0x1f, 0x8c]),
        (Coding::Deflate, b"\x78\x00 wrong header check"),
        (Coding::Deflate, b"\xffdata"),
        // Large-window brotli, as its encoder begins it: not valid in HTTP.
        (Coding::Brotli, &[0x11, 0x1e, 0, 0, 0, 0, 0, 0]),
        (Coding::Zstd, b"data: {\"choices\":[]}\n\n"),
        // A window of 16 MiB.
        (Coding::Zstd, &[0x28, 0xb5, 0x2f, 0xfd, 0, 14 << 3, 0, 0, 0]),
    ];
    for (coding, body) in table {
        for step in [1, usize::MAX] {
            let decoded = decode(coding, body.chunks(step));
            let broken = Decoded { plain: vec![], end: Err(DecodeError::Broken) };
            assert_eq!(decoded, broken, "{coding:?} {body:?} in steps of {step}");
        }
    }
}

#[test]
fn wrong_checksums_are_detected() {
    let plain = b"data: [DONE]\n\n";
    for encoding in [Encoding::Gzip, Encoding::Zlib, Encoding::ZstdChecked] {
        let body = encoding.whole(plain);
        let trailer = if encoding == Encoding::Gzip { 8 } else { 4 };
        for back in 1..=trailer {
            let mut bad = body.clone();
            let at = bad.len() - back;
            bad[at] ^= 0x10;
            assert_eq!(
                decode_whole(encoding.coding(), &bad).end,
                Err(DecodeError::Broken),
                "{encoding:?}, {back} from the end"
            );
        }
    }
}

/// A reserved flag of RFC 1952 may mean a field of unknown length.
#[test]
fn gzip_with_reserved_flags_is_broken() {
    for flags in [0x20, 0x40, 0x80] {
        let mut body = Encoding::Gzip.whole(b"data: [DONE]\n\n");
        body[3] |= flags;
        let broken = Decoded { plain: vec![], end: Err(DecodeError::Broken) };
        assert_eq!(decode_whole(Coding::Gzip, &body), broken, "{flags:#x}");
    }
}

#[test]
fn bytes_after_the_end_are_padding() {
    let plain = b"data: [DONE]\n\n".to_vec();
    let table: [&[u8]; 5] = [b"\0", b"\0\0\0\0\0\0\0\0\0\0", b"garbage", b"\x1f", b"\x1fgarbage"];
    for encoding in [Encoding::Gzip, Encoding::Zlib, Encoding::RawDeflate, Encoding::Brotli] {
        for padding in table {
            let body = [&encoding.whole(&plain), padding].concat();
            for step in [1, usize::MAX] {
                let decoded = decode(encoding.coding(), body.chunks(step));
                assert_eq!(
                    decoded,
                    Decoded { plain: plain.clone(), end: Ok(()) },
                    "{encoding:?} {padding:?}"
                );
            }
        }
    }
    // But a member that begins must end, and in zstd only frames may follow.
    let body = [&Encoding::Gzip.whole(&plain)[..], b"\x1f\x8b"].concat();
    assert_eq!(
        decode_whole(Coding::Gzip, &body),
        Decoded { plain: plain.clone(), end: Err(DecodeError::Broken) }
    );
    let body = [&Encoding::Zstd.whole(&plain)[..], b"garbage"].concat();
    assert_eq!(decode_whole(Coding::Zstd, &body), Decoded { plain, end: Err(DecodeError::Broken) });
}

#[test]
fn slicing_changes_nothing_for_damaged_bodies() {
    let transcript = Transcript::named("vllm-0.32.0/chat-stream-usage");
    for encoding in Encoding::ALL {
        let body = encoding.whole(&transcript.body[..2000]);
        for seed in 0..400 {
            let random = noise(seed, 12);
            let mut bad = body.clone();
            for place in random.chunks(3).take(1 + seed as usize % 4) {
                let at = usize::from(place[0]) << 8 | usize::from(place[1]);
                let at = at % bad.len();
                bad[at] ^= place[2] | 1;
            }
            let whole = decode_whole(encoding.coding(), &bad);
            let cut = decode(encoding.coding(), bad.chunks(1 + seed as usize % 50));
            assert_eq!(cut.end, whole.end, "{encoding:?} with seed {seed}");
            // The last slice of damaged brotli may be lost, so smaller slices may yield more.
            assert!(cut.plain.starts_with(&whole.plain), "{encoding:?} with seed {seed}");
            if encoding.coding() != Coding::Brotli {
                assert!(cut.plain == whole.plain, "{encoding:?} with seed {seed}");
            }
            // The oracle decodes no body that the decoder refuses; the decoder tolerates more at the end.
            if let Some(plain) = encoding.decode_at_once(&bad) {
                assert!(whole == Decoded { plain, end: Ok(()) }, "{encoding:?} with seed {seed}");
            }
        }
        for seed in 0..400 {
            let garbage = noise(seed, 300);
            decode(encoding.coding(), garbage.chunks(1 + seed as usize % 50));
        }
    }
}
