//! Bombs are given up after a bounded number of bytes; long legitimate streams are not.

use decode::limits::{MAX_RATIO, PIECE_MAX_BYTES, RATIO_FREE_BYTES, SLICE_MAX_BYTES};
use decode::{DecodeError, Decoder};

use crate::encode::Encoding;
use crate::{Decoded, decode, decode_whole, noise};

#[test]
fn a_bomb_is_given_up_at_the_ratio() {
    let zeros = vec![0; 20_000_000];
    for encoding in Encoding::ALL {
        let bomb = encoding.whole(&zeros);
        assert!(bomb.len() < 200_000, "{encoding:?}: {} bytes are no bomb", bomb.len());
        for step in [1, 1000, usize::MAX] {
            let decoded = decode(encoding.coding(), bomb.chunks(step));
            assert_eq!(decoded.end, Err(DecodeError::Ratio), "{encoding:?} in steps of {step}");
            let max = RATIO_FREE_BYTES.max(MAX_RATIO * bomb.len() as u64) as usize;
            assert!(decoded.plain.len() <= max, "{encoding:?}: {} bytes", decoded.plain.len());
            // At this ratio, none of the codings passes the first free bytes.
            assert!(
                decoded.plain.len() <= RATIO_FREE_BYTES as usize,
                "{encoding:?}: {}",
                decoded.plain.len()
            );
        }
    }
}

#[test]
fn incompressible_bytes_raise_the_limit_of_a_bomb() {
    // 100 kB of incompressible bytes allow 10 MB of zeros, but not in one slice, and not more.
    let plain = [noise(1, 100_000), vec![0; 20_000_000]].concat();
    for encoding in Encoding::ALL {
        let bomb = encoding.whole(&plain);
        let whole = decode_whole(encoding.coding(), &bomb);
        assert_eq!(whole.end, Err(DecodeError::Size), "{encoding:?}");
        assert!(whole.plain.len() as u64 <= SLICE_MAX_BYTES, "{encoding:?}: {}", whole.plain.len());
        let cut = decode(encoding.coding(), bomb.chunks(100));
        // Brotli encodes 8 MiB of zeros in less than a hundred bytes; the others exceed the ratio.
        let why = if encoding == Encoding::Brotli { DecodeError::Size } else { DecodeError::Ratio };
        assert_eq!(cut.end, Err(why), "{encoding:?}");
        assert!(cut.plain.len() as u64 <= MAX_RATIO * bomb.len() as u64, "{encoding:?}: {}", cut.plain.len());
    }
}

#[test]
fn short_body_of_one_byte_is_no_bomb() {
    let spaces = vec![b' '; RATIO_FREE_BYTES as usize];
    for encoding in Encoding::ALL {
        let decoded = decode_whole(encoding.coding(), &encoding.whole(&spaces));
        assert_eq!(decoded, Decoded { plain: spaces.clone(), end: Ok(()) }, "{encoding:?}");
    }
}

/// A client can ask for such an answer: a model writes a million tokens at most.
#[test]
fn answer_of_one_word_is_no_bomb() {
    let answer = format!("{{\"content\":\"{}\"}}", "yes ".repeat(1_000_000));
    for encoding in Encoding::ALL {
        let decoded = decode_whole(encoding.coding(), &encoding.whole(answer.as_bytes()));
        assert_eq!((decoded.end, decoded.plain.len()), (Ok(()), answer.len()), "{encoding:?}");
    }
}

#[test]
fn a_long_stream_may_exceed_eight_mebibytes() {
    let digits =
        |seed| noise(seed, 30_000).iter().flat_map(|byte| format!("{byte:08b}\n").into_bytes()).collect();
    let parts: Vec<Vec<u8>> = (0..40).map(digits).collect();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert!(total as u64 > SLICE_MAX_BYTES);
    for encoding in Encoding::ALL {
        let mut decoder = Decoder::new(encoding.coding());
        let mut length = 0;
        for slice in encoding.flushed(&parts) {
            decoder.feed(&slice, &mut |piece| length += piece.len()).expect("within the limits");
        }
        assert_eq!((decoder.end(), length), (Ok(()), total), "{encoding:?}");
    }
}

#[test]
fn decoder_memory_stays_within_the_documented_limits() {
    // The C library's memory for zstd is not visible to this allocator; a test in zstd.rs reads it.
    let plain: Vec<u8> = noise(3, 400_000).iter().flat_map(|byte| byte.to_string().into_bytes()).collect();
    for (encoding, max) in [
        (Encoding::Gzip, 43 << 10),
        (Encoding::Zlib, 43 << 10),
        (Encoding::RawDeflate, 43 << 10),
        (Encoding::Brotli, 5 << 20),
    ] {
        let body = encoding.whole(&plain);
        let used = allocation_counter::measure(|| {
            let mut decoder = Decoder::new(encoding.coding());
            for slice in body.chunks(1000) {
                decoder.feed(slice, &mut |_| ()).expect("within the limits");
            }
            assert_eq!(decoder.end(), Ok(()));
        });
        println!("{encoding:?}: {} bytes", used.bytes_max);
        let max = max + PIECE_MAX_BYTES as u64;
        assert!(used.bytes_max <= max, "{encoding:?}: {} of {max} bytes", used.bytes_max);
        assert_eq!(used.bytes_current, 0);
    }
}

#[test]
fn a_bomb_leaves_no_memory_behind() {
    let zeros = vec![0; 20_000_000];
    for encoding in Encoding::ALL {
        let bomb = encoding.whole(&zeros);
        let mut decoder = None;
        let used = allocation_counter::measure(|| {
            let decoder = decoder.insert(Decoder::new(encoding.coding()));
            assert_eq!(decoder.feed(&bomb, &mut |_| ()), Err(DecodeError::Ratio));
        });
        println!("{encoding:?}: {} bytes", used.bytes_max);
        assert!(used.bytes_max < 16_000_000, "{encoding:?}: {} bytes", used.bytes_max);
        assert_eq!(used.bytes_current, 0, "{encoding:?}: all memory is freed");
    }
}
