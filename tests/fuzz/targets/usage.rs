//! The usage edit. By the first byte, the rest is a request, of which only `stream_options` may change; or it is
//! choices of the stream generator, and the edit must agree with its oracle, in the slices that the rest of the bytes
//! determine.

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
