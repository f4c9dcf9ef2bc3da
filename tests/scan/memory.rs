//! The size of a scanner. Outside itself it owns the names in its body, the shape of its last frame and, from a slice
//! that ends inside a frame to the end of that frame, the state inside the frame.

use std::mem::size_of;

use scan::{RequestScanner, Scanner};

/// Bytes of one scanner: the state of its lines and the places and targets of a shape's values.
const SCANNER_BYTES: usize = 384;

/// Bytes of one request scanner: the carry, the service tier, the counts of prompts and answers by place, and the
/// output form.
const REQUEST_BYTES: usize = 832;

#[test]
fn a_scanner_is_small() {
    let (scanner, request) = (size_of::<Scanner>(), size_of::<RequestScanner>());
    println!("a scanner has {scanner} bytes, a request scanner {request}");
    assert!(scanner <= SCANNER_BYTES, "{scanner}");
    assert!(request <= REQUEST_BYTES, "{request}");
}
