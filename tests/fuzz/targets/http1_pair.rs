//! A pair of connections through the relay: scripts of any bytes, cut anywhere, keep the laws of HTTP/1.1.

#![no_main]
#![allow(dead_code, reason = "the tests of the relay use the rest")]

#[path = "../../../proxy/relay/tests/pair/mod.rs"]
mod pair;

use libfuzzer_sys::fuzz_target;
use pair::{Stage, assert_pair};

thread_local! {
    static STAGE: Stage = Stage::new();
}

fuzz_target!(|data: &[u8]| STAGE.with(|stage| assert_pair(stage, data)));
