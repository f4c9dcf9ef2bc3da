//! AWS event streams: the first byte selects the dialect, the rest is the body. The scanner must report the same in any
//! slices.

#![no_main]

use harness::cuts;
use libfuzzer_sys::fuzz_target;
use scan::{Dialect, Framing};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let dialect = Dialect::ALL[usize::from(choice) % Dialect::ALL.len()];
    let cuts = (0..=body.len()).step_by(1 + body.len() / 16);
    if let Err(why) = cuts::difference(dialect, Framing::EventStream, body, cuts) {
        panic!("{why}");
    }
});
