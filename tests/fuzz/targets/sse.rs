//! Event streams: the first byte selects the dialect, the rest is the body. Any bytes give the same in any slices and
//! at some cuts; where the oracle has a result, the scanner agrees; and no byte is read twice.

#![no_main]

use harness::{cuts, naive};
use libfuzzer_sys::fuzz_target;
use scan::{Dialect, Framing};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let dialect = Dialect::ALL[usize::from(choice) % Dialect::ALL.len()];
    let cuts = (0..=body.len()).step_by(1 + body.len() / 16);
    match cuts::difference(dialect, Framing::Sse, body, cuts) {
        Ok(seen) => {
            if let Some(naive) = naive::read(dialect, Framing::Sse, body) {
                assert!(naive == seen, "naive: {}", cuts::first_difference(&naive, &seen));
            }
        }
        Err(why) => panic!("{why}"),
    }
});
