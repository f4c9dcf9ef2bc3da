//! Laws over generated bodies: the scanner agrees with the oracle, and for any bytes, cuts change nothing and nothing
//! panics.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use harness::dice::Dice;
use harness::seen::Nothing;
use harness::{cuts, maker, naive};
use proptest::prelude::*;
use scan::{Dialect, Framing, Scanner};

use crate::short;

const CASES: u32 = 6_000;

fn config() -> ProptestConfig {
    chance::cases(CASES)
}

#[test]
fn generated_bodies_agree_with_the_oracle() {
    let (results, shapes) = (AtomicU32::new(0), AtomicU32::new(0));
    proptest!(config(), |(entropy in proptest::collection::vec(any::<u8>(), 0..600))| {
        let mut dice = Dice::new(&entropy);
        let made = maker::body(&mut dice);
        let (dialect, framing, body) = (made.dialect, made.framing, &made.body);
        let text = String::from_utf8_lossy(body).into_owned();
        let whole = cuts::in_steps(dialect, framing, body, usize::MAX);
        let single = cuts::in_steps(dialect, framing, body, 1);
        prop_assert!(whole == single, "{text:?}: {}", cuts::first_difference(&whole, &single));
        let pieces = cuts::scan_slices(dialect, framing, dice.slices(body).into_iter());
        prop_assert!(whole == pieces, "{text:?}: {}", cuts::first_difference(&whole, &pieces));
        let mut scanner = Scanner::new(dialect, framing);
        scanner.feed(body, &mut Nothing);
        shapes.fetch_add(u32::from(scanner.work().matched > 0), Relaxed);
        if let Some(naive) = naive::read(dialect, framing, body) {
            results.fetch_add(1, Relaxed);
            prop_assert!(naive == whole, "{text:?}: naive {}", cuts::first_difference(&naive, &whole));
        }
    });
    let results = results.load(Relaxed);
    let cases = config().cases;
    let shapes = shapes.load(Relaxed);
    println!("the oracle has a result for {results} of {cases}; {shapes} had frames of one shape");
    assert!(shapes > cases / 50, "too few generated frames share a shape: {shapes} of {cases}");
    assert!(results > cases / 3, "too few generated bodies have a meaning: {results} of {cases}");
}

/// Another server may answer on any path.
#[test]
fn bodies_of_other_dialects_agree_with_the_oracle() {
    let results = AtomicU32::new(0);
    proptest!(config(), |(
        entropy in proptest::collection::vec(any::<u8>(), 0..300),
        dialect in prop::sample::select(&Dialect::ALL[..]),
    )| {
        let made = maker::body(&mut Dice::new(&entropy));
        if let Some(naive) = naive::read(dialect, made.framing, &made.body) {
            results.fetch_add(1, Relaxed);
            let whole = cuts::in_steps(dialect, made.framing, &made.body, usize::MAX);
            let text = String::from_utf8_lossy(&made.body);
            prop_assert!(naive == whole, "{dialect:?} {text:?}: {}", cuts::first_difference(&naive, &whole));
        }
    });
    let (results, cases) = (results.load(Relaxed), config().cases);
    assert!(results > cases / 4, "the oracle has too few results: {results} of {cases}");
}

/// Members of one dialect that another one may not read.
const FOREIGN: [&str; 12] = [
    r#""model":"other""#,
    r#""model_name":"other""#,
    r#""modelVersion":"other""#,
    r#""id":"other""#,
    r#""request_id":"other""#,
    r#""responseId":"other""#,
    r#""service_tier":"other""#,
    r#""type":"""#,
    r#""object":"other""#,
    r#""role":"assistant""#,
    r#""status":"completed""#,
    r#""error":null"#,
];

#[test]
fn foreign_members_agree_with_the_oracle() {
    let results = AtomicU32::new(0);
    proptest!(config(), |(
        entropy in proptest::collection::vec(any::<u8>(), 0..300),
        member in 0..FOREIGN.len(),
        place in any::<prop::sample::Index>(),
    )| {
        let made = maker::body(&mut Dice::new(&entropy));
        let (dialect, framing, mut body) = (made.dialect, made.framing, made.body);
        let places: Vec<usize> = (0..body.len()).filter(|&at| body[at] == b'{').collect();
        prop_assume!(!places.is_empty());
        let at = *place.get(&places) + 1;
        let is_empty = body[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
        let member = format!("{}{}", FOREIGN[member], if is_empty { "" } else { "," });
        body.splice(at..at, member.bytes());
        let whole = cuts::in_steps(dialect, framing, &body, usize::MAX);
        if let Some(naive) = naive::read(dialect, framing, &body) {
            results.fetch_add(1, Relaxed);
            let text = String::from_utf8_lossy(&body);
            prop_assert!(naive == whole, "{dialect:?} {text:?}: {}", cuts::first_difference(&naive, &whole));
        }
    });
    let (results, cases) = (results.load(Relaxed), config().cases);
    assert!(results > cases / 4, "the oracle has too few results: {results} of {cases}");
}

/// Oracle and generator support every dialect: the oracle has a result for most generated bodies, and all kinds of
/// events occur.
#[test]
fn generator_covers_all_events_of_the_oracle() {
    for dialect in Dialect::ALL {
        let mut seed = 0x2545_F491_4F6C_DD1D_u64;
        let (mut results, mut kinds) = (0, BTreeSet::new());
        for n in 0..CASES / 10 {
            let entropy: Vec<u8> = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 56) as u8
            })
            .take(20 + (n % 300) as usize)
            .collect();
            let mut dice = Dice::new(&entropy);
            let framing = *dice.of(&[Framing::Sse, Framing::Sse, Framing::Json, Framing::Ndjson]);
            let made = maker::body_of(&mut dice, dialect, framing);
            let Some(seen) = naive::read(dialect, framing, &made.body) else { continue };
            results += 1;
            kinds.extend(seen.events().iter().map(short::kind));
        }
        println!("{}: {results} of {}, {kinds:?}", dialect.name(), CASES / 10);
        assert!(results > CASES / 10 / 6, "{}: {results}", dialect.name());
        let counted = kinds.contains("whole") || kinds.contains("choice");
        let uncounted = dialect == Dialect::Triton;
        assert!(counted != uncounted, "{}: {kinds:?}", dialect.name());
        assert!(kinds.contains("error"), "{}: {kinds:?}", dialect.name());
        let says = kinds.contains("text") || kinds.contains("empty");
        assert_eq!(says, dialect.generates(), "{}: {kinds:?}", dialect.name());
    }
}

#[test]
fn cuts_change_nothing_for_any_bytes() {
    let words: Vec<&str> = vec![
        "data:",
        "data: ",
        "event:",
        "error",
        "[DONE]",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        ":",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\u",
        "d83d",
        ",",
        "choices",
        "delta",
        "content",
        "usage",
        "completion_tokens",
        "null",
        "NaN",
        "1e9",
        "{\"choices\":[{\"delta\":{\"content\":\"",
        "{\"type\":\"",
        "response.output_text.delta",
        "response.completed",
        "message_start",
        "content_block_delta",
        "message_delta",
        "content-delta",
        "{\"text\":\"",
        "\",\"delta\":\"",
        "\",\"delta\":{\"text\":\"",
        "output_ids",
        "meta_info",
        "candidates",
        "{\"message\":{\"content\":\"",
        "\"},\"done\":true}",
        "\"}}]}",
        "\u{FEFF}",
        "é",
        "0",
    ];
    let word = prop_oneof![
        3 => proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    let body = proptest::collection::vec(word, 0..60).prop_map(|words| words.concat());
    let framing = proptest::sample::select(vec![Framing::Sse, Framing::Ndjson, Framing::Json]);
    let dialect = proptest::sample::select(Dialect::ALL.to_vec());
    proptest!(config(), |(body in body, framing in framing, dialect in dialect, at in 0..200_usize)| {
        let whole = cuts::in_steps(dialect, framing, &body, usize::MAX);
        for step in [1, 2, 5] {
            let pieces = cuts::in_steps(dialect, framing, &body, step);
            prop_assert!(whole == pieces, "{step}: {}", cuts::first_difference(&whole, &pieces));
        }
        let cut = cuts::cut_at(dialect, framing, &body, at.min(body.len()));
        prop_assert!(whole == cut, "{at}: {}", cuts::first_difference(&whole, &cut));
    });
}
