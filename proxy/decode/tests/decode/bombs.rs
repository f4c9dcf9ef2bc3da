//! Bombs are given up after a bounded number of bytes; long honest streams are not.

use decode::limits::{PIECE_BYTES, RATIO, RATIO_FREE_BYTES, SLICE_BYTES};
use decode::{Decoder, GaveUp};

use crate::encode::Way;
use crate::{Decoded, decode, decode_whole, noise};

#[test]
fn a_bomb_is_given_up_before_it_goes_off() {
    let zeros = vec![0; 20_000_000];
    for way in Way::ALL {
        let bomb = way.whole(&zeros);
        assert!(bomb.len() < 200_000, "{way:?}: {} bytes are no bomb", bomb.len());
        for step in [1, 1000, usize::MAX] {
            let decoded = decode(way.coding(), bomb.chunks(step));
            assert_eq!(decoded.end, Err(GaveUp::Ratio), "{way:?} in steps of {step}");
            let most = RATIO_FREE_BYTES.max(RATIO * bomb.len() as u64) as usize;
            assert!(decoded.plain.len() <= most, "{way:?}: {} bytes", decoded.plain.len());
            // Compressed this far, none of the codings gets past the first free bytes.
            assert!(decoded.plain.len() <= RATIO_FREE_BYTES as usize, "{way:?}: {}", decoded.plain.len());
        }
    }
}

#[test]
fn a_bomb_behind_honest_bytes_is_paid_for() {
    // 100 kB that do not compress pay for 10 MB of zeros, but not in one slice, and not for more.
    let plain = [noise(1, 100_000), vec![0; 20_000_000]].concat();
    for way in Way::ALL {
        let bomb = way.whole(&plain);
        let whole = decode_whole(way.coding(), &bomb);
        assert_eq!(whole.end, Err(GaveUp::Size), "{way:?}");
        assert!(whole.plain.len() as u64 <= SLICE_BYTES, "{way:?}: {}", whole.plain.len());
        let cut = decode(way.coding(), bomb.chunks(100));
        // Brotli packs 8 MiB of zeros into less than a hundred bytes; the others run out of ratio.
        let why = if way == Way::Brotli { GaveUp::Size } else { GaveUp::Ratio };
        assert_eq!(cut.end, Err(why), "{way:?}");
        assert!(cut.plain.len() as u64 <= RATIO * bomb.len() as u64, "{way:?}: {}", cut.plain.len());
    }
}

#[test]
fn a_short_body_of_one_byte_is_no_bomb() {
    let spaces = vec![b' '; RATIO_FREE_BYTES as usize];
    for way in Way::ALL {
        let decoded = decode_whole(way.coding(), &way.whole(&spaces));
        assert_eq!(decoded, Decoded { plain: spaces.clone(), end: Ok(()) }, "{way:?}");
    }
}

#[test]
fn a_long_honest_stream_passes_eight_mebibytes() {
    let digits =
        |seed| noise(seed, 30_000).iter().flat_map(|byte| format!("{byte:08b}\n").into_bytes()).collect();
    let parts: Vec<Vec<u8>> = (0..40).map(digits).collect();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let total: usize = parts.iter().map(|part| part.len()).sum();
    assert!(total as u64 > SLICE_BYTES);
    for way in Way::ALL {
        let mut decoder = Decoder::new(way.coding());
        let mut length = 0;
        for slice in way.flushed(&parts) {
            decoder.feed(&slice, &mut |piece| length += piece.len()).expect("honest");
        }
        assert_eq!((decoder.end(), length), (Ok(()), total), "{way:?}");
    }
}

#[test]
fn a_decoder_holds_what_the_limits_say() {
    // zstd's memory is the C library's, which no allocator here sees: a test beside it asks it.
    let plain: Vec<u8> = noise(3, 400_000).iter().flat_map(|byte| byte.to_string().into_bytes()).collect();
    for (way, most) in
        [(Way::Gzip, 43 << 10), (Way::Zlib, 43 << 10), (Way::RawDeflate, 43 << 10), (Way::Brotli, 5 << 20)]
    {
        let body = way.whole(&plain);
        let used = allocation_counter::measure(|| {
            let mut decoder = Decoder::new(way.coding());
            for slice in body.chunks(1000) {
                decoder.feed(slice, &mut |_| ()).expect("honest");
            }
            assert_eq!(decoder.end(), Ok(()));
        });
        println!("{way:?}: {} bytes", used.bytes_max);
        let most = most + PIECE_BYTES as u64;
        assert!(used.bytes_max <= most, "{way:?}: {} of {most} bytes", used.bytes_max);
        assert_eq!(used.bytes_current, 0);
    }
}

#[test]
fn a_bomb_takes_no_memory_and_leaves_none_behind() {
    let zeros = vec![0; 20_000_000];
    for way in Way::ALL {
        let bomb = way.whole(&zeros);
        let mut decoder = None;
        let used = allocation_counter::measure(|| {
            let decoder = decoder.insert(Decoder::new(way.coding()));
            assert_eq!(decoder.feed(&bomb, &mut |_| ()), Err(GaveUp::Ratio));
        });
        println!("{way:?}: {} bytes", used.bytes_max);
        assert!(used.bytes_max < 16_000_000, "{way:?}: {} bytes", used.bytes_max);
        assert_eq!(used.bytes_current, 0, "{way:?}: nothing is held once given up");
    }
}
