//! Numbers of a usage object in every spelling: those of JSON's grammar count, others are rejected. Each body is cut at
//! every byte, and compared with the oracle.

use harness::{cuts, naive};
use scan::Dialect::OpenaiChat as Chat;
use scan::Framing::{Json, Sse};

use crate::short::short;

/// A count as written, and its value.
const COUNTS: &[(&str, u64)] =
    &[("0", 0), ("-0", 0), ("7", 7), ("10", 10), ("12.0", 12), ("1e05", 100_000), ("1E+2", 100), ("0e0", 0)];

/// Numbers that are not counts.
const REFUSED: &[&str] = &["0.5", "-1", "-0.5", "1e-1", "1e400", "9007199254740994"];

/// Texts that begin like a number and are none.
const MALFORMED: &[&str] = &["00", "01", "05000000", "-01", "00.0", "1.", "1e", "-", "0x10"];

#[test]
fn numbers_of_the_grammar_count() {
    for (number, count) in COUNTS {
        assert_eq!(events(number), format!("whole(in {count} out 3) |"), "{number}");
    }
}

#[test]
fn number_with_leading_zero_is_no_count() {
    for number in REFUSED.iter().chain(MALFORMED) {
        assert_eq!(events(number), "whole(out 3 rejected 1) |", "{number}");
    }
}

/// A frame that equals the one before except for its numbers is not walked; its numbers are read alike.
#[test]
fn leading_zero_in_known_shape_is_no_count() {
    let frame = |input: &str| {
        format!(
            r#"data: {{"choices":[{{"index":0,"delta":{{"content":"a"}}}}],"usage":{{"prompt_tokens":{input},"completion_tokens":1}}}}"#
        )
    };
    for (number, expected) in [
        ("05000000", "text0/1 running0(out 1 rejected 1) |"),
        ("00", "text0/1 running0(out 1 rejected 1) |"),
        ("0", "text0/1 running0(in 0 out 1) |"),
        ("5000000", "text0/1 running0(in 5000000 out 1) |"),
    ] {
        let body = format!("{}\n\n{}\n\n", frame("9"), frame(number));
        let seen = cuts::difference(Chat, Sse, body.as_bytes(), 0..body.len() + 1).unwrap();
        assert_eq!(short(&seen), format!("text0/1 running0(in 9 out 1) | {expected}"), "{number}");
    }
}

#[test]
fn unstreamed_leading_zero_is_no_count() {
    let body = r#"{"choices":[{"index":0,"message":{"content":"a"}}],"usage":{"prompt_tokens":05000000,"completion_tokens":3}}"#;
    let seen = cuts::difference(Chat, Json, body.as_bytes(), 0..body.len() + 1).unwrap();
    assert_eq!(short(&seen), "text0/1 choice0(out 3 rejected 1) |");
}

/// Returns the count that a usage object with this number yields.
fn events(number: &str) -> String {
    let body = format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{number},\"completion_tokens\":3}}}}\n\n"
    );
    let seen = cuts::difference(Chat, Sse, body.as_bytes(), 0..body.len() + 1)
        .unwrap_or_else(|why| panic!("{number}: {why}"));
    if let Some(naive) = naive::read(Chat, Sse, body.as_bytes()) {
        assert_eq!(naive, seen, "{number}: {}", cuts::first_difference(&naive, &seen));
    }
    short(&seen)
}
