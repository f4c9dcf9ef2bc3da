//! The size of a scanner. It owns nothing outside itself, but for a text, names or ids that it keeps, so
//! its size is its memory; that feeding it allocates nothing is a test of its own.

use std::mem::size_of;

use scan::{RequestScanner, Scanner};

/// Bytes of one scanner. Most of it is one frame's shape, the events held back, the carry, the places that an
/// editor may change, and five sets of counts.
const SCANNER_BYTES: usize = 3 * 1024 + 608;

/// Bytes of one request scanner: the carry, the model's name, the service tier, what each place says of
/// prompts and answers, and in which form the answers are wanted.
const REQUEST_BYTES: usize = 928;

#[test]
fn a_scanner_is_small() {
    let (scanner, request) = (size_of::<Scanner>(), size_of::<RequestScanner>());
    println!("a scanner has {scanner} bytes, a request scanner {request}");
    assert!(scanner <= SCANNER_BYTES, "{scanner}");
    assert!(request <= REQUEST_BYTES, "{request}");
}
