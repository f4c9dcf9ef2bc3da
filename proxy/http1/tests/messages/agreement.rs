//! Laws of heads and bodies that consist of any bytes, for the property tests and the fuzz targets.

use std::iter;

use crate::naive::{self, Read};
use crate::read::{
    Verdict, read_chunked, read_request, read_request_framing, read_response, read_response_framing,
};

/// The positions at which an input is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// Each.
    Every,
    /// Some, selected by the bytes, so that a fuzz target reads more inputs in the same time.
    Some,
}

/// The number of cuts in [`Cuts::Some`].
const SOME: usize = 8;

/// Asserts that the parser agrees with the oracle about a request's head and its framing. Of each beginning of the head, it
/// must have no verdict yet, or the same one.
pub(crate) fn assert_request(bytes: &[u8], cuts: Cuts) {
    let verdict = read_request(bytes);
    let expected = naive::request(bytes);
    assert_head(&expected, &verdict);
    if let Read::Whole(head, _) = &expected {
        assert_eq!(read_request_framing(bytes), naive::request_framing(head));
    }
    assert_beginnings(bytes, cuts, &verdict, read_request);
}

/// Asserts the same of a response.
pub(crate) fn assert_response(bytes: &[u8], cuts: Cuts) {
    let verdict = read_response(bytes);
    let expected = naive::response(bytes);
    assert_head(&expected, &verdict);
    if let Read::Whole(head, _) = &expected {
        for to_head in [true, false] {
            assert_eq!(read_response_framing(bytes, to_head), naive::response_framing(head, to_head));
        }
    }
    assert_beginnings(bytes, cuts, &verdict, read_response);
}

fn assert_head(expected: &Read<naive::Head>, verdict: &Verdict) {
    match (expected, verdict) {
        (Read::Whole(head, rest), Ok(Some((found, left)))) => assert_eq!((found, left), (head, rest)),
        (Read::Whole(..), verdict) => panic!("{expected:?}, and not {verdict:?}"),
        (Read::Invalid, verdict) => assert!(verdict.is_err(), "{verdict:?}"),
        (Read::Partial, verdict) => assert!(!matches!(verdict, Ok(Some(_))), "{verdict:?}"),
    }
}

fn assert_beginnings(bytes: &[u8], cuts: Cuts, verdict: &Verdict, read: impl Fn(&[u8]) -> Verdict) {
    let head = |verdict: &Verdict| verdict.clone().map(|whole| whole.map(|(head, _)| head));
    for cut in cuts.of(bytes).filter(|&cut| cut < bytes.len()) {
        match read(&bytes[..cut]) {
            Ok(None) => {}
            early => assert_eq!(head(&early), head(verdict), "cut at {cut}"),
        }
    }
}

/// Asserts that the decoder agrees with the oracle about a chunked body, whole, cut in two and byte by byte.
pub(crate) fn assert_chunked(bytes: &[u8], is_request: bool, cuts: Cuts) {
    let mut seen = Vec::new();
    let expected = naive::chunked(bytes, is_request, &mut seen);
    let assert_slices = |slices: &[&[u8]]| {
        let (found, payload) = read_chunked(slices, is_request);
        assert_eq!(found, expected, "{slices:?}");
        assert_eq!(payload, seen, "{slices:?}");
    };
    assert_slices(&[bytes]);
    assert_slices(&bytes.chunks(1).collect::<Vec<_>>());
    for cut in cuts.of(bytes) {
        assert_slices(&[&bytes[..cut], &bytes[cut..]]);
    }
}

impl Cuts {
    /// The positions in this input.
    fn of(self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let (every, some) = if self == Self::Every { (bytes.len() + 1, 0) } else { (0, SOME) };
        // Those of a linear congruential generator, whose seed is a hash of the input (FNV-1a).
        let seed = bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        let draws = iter::successors(Some(seed), |state| {
            Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        });
        let len = bytes.len() + 1;
        (0..every).chain(draws.take(some).map(move |draw| (draw >> 33) as usize % len))
    }
}
