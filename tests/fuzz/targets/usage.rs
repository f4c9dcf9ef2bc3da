//! The usage edit. The first byte chooses: the rest is a request, which must read as before but for
//! `stream_options`; or it is choices of the maker of streams, which must lose what the naive editor
//! takes out, in the pieces that the rest of the bytes choose.

#![no_main]

use harness::dice::Dice;
use harness::edited;
use libfuzzer_sys::fuzz_target;
use usage::UsageOptions;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    if choice & 0x80 == 0 {
        let want = UsageOptions {
            include: choice & 1 == 0,
            continuous: choice & 2 != 0,
            timings: choice & 4 != 0,
            alone_is_void: choice & 8 != 0,
            is_strict: choice & 16 != 0,
        };
        edited::check_request(rest, want);
    } else {
        edited::check_stream(&mut Dice::new(rest));
    }
});
