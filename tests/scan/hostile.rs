//! Bodies that no server would send: depth, length, torn escapes, bytes that are not text. Nothing panics, nothing
//! grows, and the next frame is read normally.

use harness::cuts;
use scan::Dialect::OpenaiChat as Chat;
use scan::Framing::Sse;
use scan::limits::{CARRY_BYTES, MAX_DEPTH};

use crate::short::short;

const NEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";

/// Scans a payload and the frame after it, in steps and at cuts near the carry's end; returns the events of the
/// payload.
fn hostile(payload: &[u8]) -> String {
    let body = [b"data: ", payload, b"\n\n", NEXT.as_bytes()].concat();
    let (head, tail) = if body.len() < 4096 { (400, 100) } else { (30, 90) };
    let near = (0..body.len().min(head)).chain(body.len().saturating_sub(tail)..body.len());
    let seen = cuts::difference(Chat, Sse, &body, near).unwrap_or_else(|why| panic!("{why}"));
    let events = short(&seen);
    let hostile =
        events.strip_suffix("text0/1 |").unwrap_or_else(|| panic!("the next frame was lost: {events}"));
    hostile.trim().to_owned()
}

fn content(text: &[u8]) -> String {
    hostile(&[b"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"", text, b"\"}}]}"].concat())
}

#[test]
fn depth_uses_no_stack_and_hides_nothing() {
    let deep = |depth: usize| format!("{{\"x\":{}{},\"choices\":[]}}", "[".repeat(depth), "]".repeat(depth));
    let limit = MAX_DEPTH as usize;
    assert_eq!(hostile(deep(limit - 1).as_bytes()), "meta |");
    for depth in [limit, limit + 1, 10 * limit, 100_000] {
        assert_eq!(hostile(deep(depth).as_bytes()), "meta |", "{depth}");
        let unclosed = deep(depth).replacen(']', "", 1);
        assert_eq!(hostile(unclosed.as_bytes()), "other |", "{depth}");
        let (open, close) = (r#"{"]":["#.repeat(depth / 2), "]}".repeat(depth / 2));
        let inside = r#"{"a\"}":"\\","usage":{"prompt_tokens":9},"b":[[],{},"[{\u005d",-1.5e3 , null]}"#;
        let frame = format!(
            r#"{{"tools":{open}[{inside} , {inside}]{close},"choices":[],"usage":{{"prompt_tokens":3}}}}"#
        );
        assert_eq!(hostile(frame.as_bytes()), "whole(in 3) |", "{depth}");
    }
    let bomb = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        for open in ["[", "{\"a\":", "[{\"choices\":"] {
            let bomb = open.repeat(100_000);
            assert_eq!(hostile(bomb.as_bytes()), "other |");
        }
    });
    bomb.expect("a thread").join().expect("no overflow");
}

#[test]
fn a_megabyte_of_any_byte_is_skipped() {
    let long = "x".repeat(1 << 20);
    assert_eq!(content(long.as_bytes()), "text0/1048576 |");
    assert_eq!(content("\\u00e9".repeat(1 << 18).as_bytes()), "text0/262144 |");
    assert_eq!(content("\\\\".repeat(1 << 19).as_bytes()), "text0/524288 |");
    for member in [
        format!("\"{long}\":1"),
        format!("\"model\":\"{long}\""),
        format!("\"x\":\"{long}\""),
        format!("\"x\":1{}", "0".repeat(1 << 20)),
        format!("\"x\":[{}1]", "1,".repeat(1 << 19)),
    ] {
        assert_eq!(hostile(format!("{{{member},\"choices\":[]}}").as_bytes()), "meta |");
    }
    let usage =
        format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":1{long}}}}}", long = "0".repeat(1 << 20));
    assert_eq!(hostile(usage.as_bytes()), "whole(rejected 1) |");
    assert_eq!(hostile(long.as_bytes()), "other |");
    for line in [": ", "event: ", "id: ", ""] {
        let body = format!("{line}{long}\n{NEXT}");
        let seen = cuts::difference(Chat, Sse, body.as_bytes(), 0..60).unwrap_or_else(|why| panic!("{why}"));
        let ping = if line == ": " { "ping " } else { "" };
        assert_eq!(short(&seen), format!("{ping}text0/1 |"));
    }
}

#[test]
fn ten_thousand_empty_frames_are_no_text() {
    let mut body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n".repeat(10_000);
    body.push_str("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":7}}\n\n");
    let events = short(&cuts::in_steps(Chat, Sse, body.as_bytes(), 1460));
    assert_eq!(events, format!("{}whole(in 1 out 7) |", "empty0 | ".repeat(10_000)));
}

#[test]
fn usage_is_found_behind_three_megabytes() {
    let long = "x".repeat(3 << 20);
    let body = format!(
        "{{\"output\":[\"{long}\"],\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":7}}}}"
    );
    assert_eq!(hostile(body.as_bytes()), "whole(in 1 out 7) |");
}

#[test]
fn escapes_may_end_anywhere() {
    assert_eq!(content(br"\u"), "text0/1 |");
    assert_eq!(content(br"\u00"), "text0/1 |");
    assert_eq!(content(br"\uZZZZ"), "text0/5 |");
    assert_eq!(content(br"\ud83d\u"), "text0/2 |");
    assert_eq!(content(br"\x"), "text0/1 |");
    assert_eq!(hostile(br#"{"choices":[{"delta":{"content":"\"}}]}"#), "other |");
    assert_eq!(hostile(br#"{"choices":[{"delta":{"content":"\u12"#), "other |");
}

/// A key, a name or a word with an escape at every place around the end of what is carried.
#[test]
fn escapes_at_the_end_of_the_carry() {
    for len in CARRY_BYTES - 16..CARRY_BYTES + 16 {
        for escape in
            [r"\u0041", r"\u00e9", r"\uFFFF", r"\ud83d\ude00", r"\ud83d", r"\n", r"\u", r"\u0", r"\\"]
        {
            let long = format!("{}{escape}", "k".repeat(len));
            assert_eq!(hostile(format!("{{\"{long}\":1,\"choices\":[]}}").as_bytes()), "meta |", "{long}");
            let word = format!("{{\"choices\":[{{\"finish_reason\":\"{long}\"}}]}}");
            assert_eq!(hostile(word.as_bytes()), "finish0:other |", "{long}");
            hostile(format!("{{\"model\":\"{long}\",\"choices\":[]}}").as_bytes());
        }
    }
}

#[test]
fn numbers_longer_than_the_carry_may_be_cut() {
    for len in CARRY_BYTES - 3..CARRY_BYTES + 3 {
        for number in [format!("0.{}5", "0".repeat(len)), format!("1.{}", "0".repeat(len)), "9".repeat(len)] {
            hostile(format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":{number}}}}}").as_bytes());
            hostile(format!("{{\"choices\":[{{\"index\":{number}}}]}}").as_bytes());
        }
    }
}

#[test]
fn invalid_utf8_counts_by_lead_bytes() {
    assert_eq!(content(b"\xff"), "text0/1 |");
    assert_eq!(content(b"\xf0\x9f\x98"), "text0/1 |");
    assert_eq!(content(b"a\x80\x80b"), "text0/2 |");
    assert_eq!(content(b"\xc3\"},\"x\":{\"y\":\"\xa9"), "text0/1 |");
    assert_eq!(hostile(b"{\"\xff\xfe\":1,\"choices\":[]}"), "meta |");
    assert_eq!(hostile(b"\xff\xfe\x00"), "other |");
    assert_eq!(hostile(b"{\"model\":\"\xf0\x9f\",\"choices\":[]}"), "meta |");
}

/// Text that is not JSON, without a special meaning.
#[test]
fn invalid_json_is_one_frame_without_meaning() {
    for payload in [
        "{",
        "}",
        "[",
        "]",
        "{]",
        "[}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "{1:2}",
        "nul",
        "tru",
        "{\"a\":1}}",
        "{} {}",
        "{}x",
        "'a'",
        "{a:1}",
        "\"",
        "[\"",
        "+1",
        "{\"a\":1 \"b\":2}",
        "\u{FEFF}{}",
        "//",
        "{\"a\":.}",
    ] {
        assert_eq!(hostile(payload.as_bytes()), "other |", "{payload}");
    }
}

/// Invalid but harmless: skipped in ignored members, rejected in counts.
#[test]
fn nearly_valid_json_is_accepted() {
    for value in ["NaN", "-Infinity", "Infinity", "01", "1.", "-", "1e", "\"a\tb\""] {
        let frame = format!("{{\"x\":{value},\"choices\":[],\"usage\":{{\"prompt_tokens\":1}}}}");
        assert_eq!(hostile(frame.as_bytes()), "whole(in 1) |", "{value}");
    }
    for number in [
        "-1",
        "1.5",
        "1e400",
        "9007199254740993",
        "18446744073709551616",
        "NaN",
        "\"x\"",
        "\"\"",
        "true",
        "{}",
        "[1]",
        "-",
        "01",
        "1.",
        "1e",
    ] {
        let frame =
            format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":{number}}}}}");
        assert_eq!(hostile(frame.as_bytes()), "whole(in 3 rejected 1) |", "{number}");
    }
    for (number, count) in
        [("12.0", 12), ("\"7\"", 7), ("1e3", 1000), ("-0", 0), ("9007199254740992", 1_u64 << 53)]
    {
        let frame = format!("{{\"choices\":[],\"usage\":{{\"prompt_tokens\":{number}}}}}");
        assert_eq!(hostile(frame.as_bytes()), format!("whole(in {count}) |"), "{number}");
    }
}

/// More answers in a frame than are held back: all are reported, in order.
#[test]
fn a_frame_of_many_answers_loses_none() {
    for answers in [15_u32, 16, 17, 100] {
        let list: Vec<String> = (0..answers)
            .map(|n| format!("{{\"index\":{n},\"delta\":{{\"content\":\"a\"}},\"finish_reason\":\"stop\"}}"))
            .collect();
        let events: String = (0..answers).map(|n| format!("text{n}/1 finish{n}:stop ")).collect();
        assert_eq!(hostile(format!("{{\"choices\":[{}]}}", list.join(",")).as_bytes()), format!("{events}|"));
    }
}
