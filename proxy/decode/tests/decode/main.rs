//! Decoding by topic: whole and cut bodies against the libraries' one-shot calls, bodies that are
//! damaged, and bombs.

mod bombs;
mod damage;
mod encode;
mod flushed;
mod round_trip;

use decode::{Coding, Decoder, GaveUp};

/// What came out of a body, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    plain: Vec<u8>,
    end: Result<(), GaveUp>,
}

/// Feeds the slices, ends, and holds the laws of every body: small pieces, and giving up is for good.
fn decode<'a>(coding: Coding, slices: impl Iterator<Item = &'a [u8]>) -> Decoded {
    let mut decoder = Decoder::new(coding);
    let mut plain = Vec::new();
    let mut gave_up = None;
    for slice in slices {
        let mut pieces = 0;
        let fed = decoder.feed(slice, &mut |piece| {
            assert!(!piece.is_empty() && piece.len() <= decode::limits::PIECE_BYTES);
            plain.extend_from_slice(piece);
            pieces += 1;
        });
        match gave_up {
            Some(why) => assert_eq!((fed, pieces), (Err(why), 0), "it stays given up"),
            None => gave_up = fed.err(),
        }
        assert_eq!(decoder.gave_up(), gave_up);
    }
    let end = decoder.end();
    assert!(gave_up.is_none_or(|why| end == Err(why)), "{end:?} after {gave_up:?}");
    assert_eq!(decoder.end(), end, "it says so again");
    Decoded { plain, end }
}

fn decode_whole(coding: Coding, body: &[u8]) -> Decoded {
    decode(coding, std::iter::once(body))
}

/// Bytes that look like nothing, the same each time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut chance = chance::Chance::new(seed);
    std::iter::repeat_with(|| (chance.next() >> 32) as u8).take(length).collect()
}
