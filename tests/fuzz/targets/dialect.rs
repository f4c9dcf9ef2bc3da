//! Frames of every dialect: the bytes are choices of the harness's generator, which writes plausible streams with
//! implausible values; the scanner must agree with the oracle, in the slices that the rest of the bytes determine.

#![no_main]

use harness::dice::Dice;
use harness::{cuts, maker, naive};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|entropy: &[u8]| {
    let mut dice = Dice::new(entropy);
    let made = maker::body(&mut dice);
    let (dialect, framing, body) = (made.dialect, made.framing, &made.body);
    let whole = cuts::in_steps(dialect, framing, body, usize::MAX);
    let text = || String::from_utf8_lossy(body);
    for slices in [dice.slices(body), body.chunks(1).collect()] {
        let pieces = cuts::scan_slices(dialect, framing, slices.into_iter());
        assert!(pieces == whole, "{:?}: {}", text(), cuts::first_difference(&whole, &pieces));
    }
    if let Some(naive) = naive::read(dialect, framing, body) {
        assert!(naive == whole, "{:?}: naive {}", text(), cuts::first_difference(&naive, &whole));
    }
});
