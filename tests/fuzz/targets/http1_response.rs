//! Heads of responses of any bytes: the parser agrees with the oracle, and has the same verdict, or none, on a beginning.

#![no_main]
#![allow(dead_code, reason = "the other targets use the rest")]

#[path = "../../../proxy/http1/tests/messages/agreement.rs"]
mod agreement;
#[path = "../../../proxy/http1/tests/messages/naive.rs"]
mod naive;
#[path = "../../../proxy/http1/tests/messages/read.rs"]
mod read;

use agreement::{Cuts, assert_response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| assert_response(data, Cuts::Some));
