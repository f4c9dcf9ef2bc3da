//! Laws of the edit over generated streams and requests.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use harness::dice::Dice;
use harness::{counted, edited, naive};
use proptest::prelude::*;
use usage::UsageOptions;

fn config() -> ProptestConfig {
    chance::cases(3_000)
}

#[test]
fn any_cut_agrees_with_the_oracle() {
    let changed = AtomicU32::new(0);
    proptest!(config(), |(entropy in prop::collection::vec(any::<u8>(), 0..500))| {
        let made = counted::stream(&mut Dice::new(&entropy));
        let differs = naive::edit(&made.body, made.added) != made.body;
        changed.fetch_add(u32::from(differs), Relaxed);
        edited::check_stream(&mut Dice::new(&entropy));
    });
    let (changed, cases) = (changed.load(Relaxed), config().cases);
    assert!(changed > cases / 2, "too few streams are edited: {changed} of {cases}");
}

/// Parts of requests.
const WORDS: [&str; 25] = [
    "{",
    "}",
    ",",
    ":",
    "\"stream\"",
    "true",
    "false",
    "null",
    "\"stream_options\"",
    "{}",
    "\"include_usage\"",
    "\"continuous_usage_stats\"",
    "\"stream\":true,",
    "\"stream_options\":{",
    "\"include_usage\":false",
    " ",
    "\n\t",
    "\"m\":[1,{\"stream\":false}],",
    "\"str\\u0065am_options\":",
    "1",
    "\"x\":\"é\\\"\",",
    "[",
    "]",
    "\"include_usage\":true,",
    "\"timings_per_token\":true,",
];

/// Every set of options that is requested from some kind of server.
const ASKS: [UsageOptions; 6] = [
    UsageOptions { include: true, continuous: false, timings: false, alone_is_void: false, is_strict: false },
    UsageOptions { include: true, continuous: true, timings: false, alone_is_void: false, is_strict: false },
    UsageOptions { include: true, continuous: true, timings: false, alone_is_void: true, is_strict: false },
    UsageOptions { include: false, continuous: true, timings: false, alone_is_void: false, is_strict: false },
    UsageOptions { include: false, continuous: false, timings: true, alone_is_void: true, is_strict: false },
    UsageOptions { include: true, continuous: false, timings: true, alone_is_void: true, is_strict: false },
];

#[test]
fn injected_options_change_nothing_else() {
    let edits = AtomicU32::new(0);
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..12);
    let options = prop::collection::vec(
        prop::sample::select(
            &[
                "\"stream\":true",
                "\"stream\":false",
                "\"stream\" : true ",
                "\"stream\":1.0",
                "\"stream\":\"No\"",
                "\"stream_options\":{\"include_usage\":\"off\",\"continuous_usage_stats\":1}",
                "\"stream_options\":null",
                "\"stream_options\":{}",
                "\"stream_options\":{ \"include_usage\" : false }",
                "\"stream_options\":{\"include_usage\":true}",
                "\"stream_options\":{\"include_obfuscation\":true}",
                "\"stream_options\":{\"continuous_usage_stats\":false,\"include_usage\":null}",
                "\"stream_options\":{\"continuous_usage_stats\":true,\"include_usage\":true}",
                "\"stream_options\":{\"continuous_usage_stats\":true}",
                "\"stream_options\":[]",
                "\"timings_per_token\":false",
                "\"timings_per_token\": true",
                "\"timings_per_token\":null",
                "\"n\":2.50e1",
                "\"messages\":[{\"content\":\"\\\"stream\\\":true é😀\"}]",
            ][..],
        ),
        0..6,
    );
    proptest!(config(), |(words in words, members in options, gap in prop::sample::select(&["", " ", "\r\n"][..]))| {
        let request = format!("{gap}{{{gap}{}{gap}}}{gap}", members.join(&format!("{gap},{gap}")));
        for want in ASKS {
            edited::check_request(words.concat().as_bytes(), want);
            edited::check_request(request.as_bytes(), want);
            edits.fetch_add(u32::from(naive::asked(request.as_bytes(), want).is_some()), Relaxed);
        }
    });
    let (edits, cases) = (edits.load(Relaxed), config().cases);
    assert!(edits > cases / 3, "too few requests are edited: {edits} of {cases}");
}
