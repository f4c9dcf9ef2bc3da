//! Chunked bodies of any bytes: the decoder agrees with the oracle, with the body whole, byte by byte, and cut in two.

#![no_main]
#![allow(dead_code, reason = "the other targets use the rest")]

#[path = "../../../proxy/http1/tests/messages/agreement.rs"]
mod agreement;
#[path = "../../../proxy/http1/tests/messages/naive.rs"]
mod naive;
#[path = "../../../proxy/http1/tests/messages/read.rs"]
mod read;

use agreement::{Cuts, assert_chunked};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for is_request in [true, false] {
        assert_chunked(data, is_request, Cuts::Some);
    }
});
