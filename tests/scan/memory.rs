//! The size of a scanner. It owns no memory outside itself, except for a kept text, names or ids, so its size is its
//! memory; another test checks that it allocates nothing while it reads.

use std::mem::size_of;

use scan::{RequestScanner, Scanner};

/// Bytes of one scanner: mostly one frame's shape, the events held back, the carry, the places that an editor may
/// change, five sets of counts, and a pointer to the envelope of a message.
const SCANNER_BYTES: usize = 3 * 1024 + 624;

/// Bytes of one request scanner: the carry, the model's name, the service tier, the counts of prompts and answers by
/// place, and the output form.
const REQUEST_BYTES: usize = 928;

#[test]
fn a_scanner_is_small() {
    let (scanner, request) = (size_of::<Scanner>(), size_of::<RequestScanner>());
    println!("a scanner has {scanner} bytes, a request scanner {request}");
    assert!(scanner <= SCANNER_BYTES, "{scanner}");
    assert!(request <= REQUEST_BYTES, "{request}");
}
