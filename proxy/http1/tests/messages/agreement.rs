//! Laws of heads and bodies of any bytes, for the properties and for the fuzz targets.

use crate::naive::{self, Read};
use crate::read::{Verdict, read_chunked, read_request, read_response};

/// Asserts that the parser agrees with the oracle about a request's head, and that its verdict on each beginning is none,
/// or that on the whole.
pub(crate) fn assert_request(bytes: &[u8]) {
    let verdict = read_request(bytes);
    match (naive::request(bytes), &verdict) {
        (Read::Whole(head, rest), verdict) => assert_eq!(verdict, &Ok(Some((head, rest)))),
        (Read::Invalid, verdict) => assert!(verdict.is_err(), "{verdict:?}"),
        (Read::Partial, verdict) => assert!(!matches!(verdict, Ok(Some(_))), "{verdict:?}"),
    }
    let head = |verdict: &Verdict| verdict.clone().map(|whole| whole.map(|(head, _)| head));
    for cut in 0..bytes.len() {
        match read_request(&bytes[..cut]) {
            Ok(None) => {}
            early => assert_eq!(head(&early), head(&verdict), "cut at {cut}"),
        }
    }
}

/// Asserts that the decoder agrees with the oracle about a chunked body, whole, at every cut and byte by byte.
pub(crate) fn assert_chunked(bytes: &[u8], is_request: bool) {
    let mut seen = Vec::new();
    let expected = naive::chunked(bytes, is_request, &mut seen);
    let mut cuts = vec![vec![bytes], bytes.chunks(1).collect()];
    cuts.extend((0..=bytes.len()).map(|cut| vec![&bytes[..cut], &bytes[cut..]]));
    for slices in cuts {
        let (found, payload) = read_chunked(&slices, is_request);
        assert_eq!(found, expected, "{slices:?}");
        assert_eq!(payload, seen, "{slices:?}");
    }
}

/// Asserts that the verdict on each beginning of a response's head is none, or that on the whole.
pub(crate) fn assert_response(bytes: &[u8]) {
    let verdict = read_response(bytes);
    for cut in 0..bytes.len() {
        match read_response(&bytes[..cut]) {
            Ok(None) => {}
            early => assert_eq!(early, verdict, "cut at {cut}"),
        }
    }
}
