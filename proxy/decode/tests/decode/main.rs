//! Decoding by topic: whole and cut bodies against the libraries' one-shot calls, damaged bodies, and bombs.

mod bombs;
mod damage;
mod encode;
mod flushed;
mod round_trip;

use decode::{Coding, DecodeError, Decoder};

/// The output of a body and its result.
#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    plain: Vec<u8>,
    end: Result<(), DecodeError>,
}

/// Decodes the slices and checks the laws of every body: bounded pieces, and a permanent error.
fn decode<'a>(coding: Coding, slices: impl Iterator<Item = &'a [u8]>) -> Decoded {
    let mut decoder = Decoder::new(coding);
    let mut plain = Vec::new();
    let mut gave_up = None;
    for slice in slices {
        let mut pieces = 0;
        let fed = decoder.feed(slice, &mut |piece| {
            assert!(!piece.is_empty() && piece.len() <= decode::limits::PIECE_MAX_BYTES);
            plain.extend_from_slice(piece);
            pieces += 1;
        });
        match gave_up {
            Some(why) => assert_eq!((fed, pieces), (Err(why), 0), "the error is permanent"),
            None => gave_up = fed.err(),
        }
        assert_eq!(decoder.gave_up(), gave_up);
    }
    let end = decoder.end();
    assert!(gave_up.is_none_or(|why| end == Err(why)), "{end:?} after {gave_up:?}");
    assert_eq!(decoder.end(), end, "the result is permanent");
    Decoded { plain, end }
}

fn decode_whole(coding: Coding, body: &[u8]) -> Decoded {
    decode(coding, std::iter::once(body))
}

/// Pseudo-random bytes, the same for the same seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut chance = chance::Chance::new(seed);
    std::iter::repeat_with(|| (chance.next() >> 32) as u8).take(length).collect()
}
