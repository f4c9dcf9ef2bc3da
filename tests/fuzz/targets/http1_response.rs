//! Heads of responses: any bytes give the same as by the oracle, and each beginning the same verdict or none.

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
