//! JSON bodies and lines: the first byte selects dialect (its low bits) and framing (the highest), the rest is the
//! body. For strict JSON the scanner must agree with the oracle; for anything else it must report the same in any
//! slices. The same bytes are also read as a request.

#![no_main]

use harness::{cuts, naive};
use libfuzzer_sys::fuzz_target;
use scan::{Dialect, Framing, RequestScanner};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let dialect = Dialect::ALL[usize::from(choice & 0x7F) % Dialect::ALL.len()];
    let framing = if choice & 0x80 == 0 { Framing::Json } else { Framing::Ndjson };
    let cuts = (0..=body.len()).step_by(1 + body.len() / 16);
    match cuts::difference(dialect, framing, body, cuts) {
        Ok(seen) => {
            if let Some(naive) = naive::read(dialect, framing, body) {
                assert!(naive == seen, "naive: {}", cuts::first_difference(&naive, &seen));
            }
        }
        Err(why) => panic!("{why}"),
    }

    let mut whole = RequestScanner::new();
    whole.feed(body);
    let mut single = RequestScanner::new();
    body.chunks(1).for_each(|byte| single.feed(byte));
    let (whole, single) = (whole.end(), single.end());
    assert_eq!(format!("{whole:?}"), format!("{single:?}"));
    if let Some(asked) = naive::read_request(body) {
        assert_eq!((asked.answers, asked.stream), (whole.answers, whole.stream));
        assert_eq!((asked.prompt_ids, asked.model.as_str()), (whole.prompt_ids, whole.model()));
        assert_eq!(asked.sampling, whole.sampling);
    }
});
