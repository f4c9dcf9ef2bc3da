//! Every label × every framing × every cut: of a stream, the client receives what it would without the added option.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use meter::Tick;
use usage::{AddedOptions, Cuts, Editor};

use crate::Edits;
use crate::tests::{CHAT, CLEAN, end, requested};

const LABELS: [&str; 9] = [
    "",
    "text/event-stream",
    "application/json",
    "application/problem+json",
    "application/x-ndjson",
    "application/jsonl",
    "text/plain; charset=utf-8",
    "text/html",
    "application/octet-stream",
];

/// The frames of an answer without the option, and that of the option.
const FRAMES: [&str; 3] = [
    r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"b{}\n{"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
];
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;

/// What the client receives of a body, whether something that was not asked for is known to be in it, and the counts.
fn received(label: &'static str, has_length: bool, slices: [&str; 2]) -> (String, bool, (u64, u64)) {
    let mut exchange = requested(CHAT, r#"{"stream":true}"#);
    exchange.asked_more(Some(AddedOptions { include: true, ..AddedOptions::default() }));
    let mut headers = HeaderMap::new();
    if !label.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(label));
    }
    if has_length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(slices.concat().len()));
    }
    let is_edited = match exchange.response_head(200, &headers, None, Tick(2)).unwrap().edits {
        Edits::None => false,
        Edits::Stream => true,
        Edits::IfStream => exchange.is_edited(slices[0].as_bytes(), !has_length),
    };
    let (mut editor, mut body, mut cuts) = (Editor::new(), Vec::new(), Cuts::default());
    for slice in slices.into_iter().filter(|slice| !slice.is_empty()) {
        exchange.response_body(slice.as_bytes(), Tick(3), &mut cuts).unwrap();
        let bytes = Bytes::copy_from_slice(slice.as_bytes());
        body.extend_from_slice(&if is_edited { editor.edit(bytes, &mut cuts) } else { bytes });
    }
    body.extend_from_slice(&editor.release());
    let ended = end(&mut exchange, CLEAN).unwrap();
    let tokens = &ended.record.tokens;
    let is_lost = ended.keeps_added || editor.missed() > 0;
    (String::from_utf8(body).unwrap(), is_lost, (tokens.input(), tokens.output()))
}

#[test]
fn stream_under_any_label_loses_the_added_usage_at_any_cut() {
    let single = [r#"{"choices":[{"index":0,"delta":{"content":"ab"},"finish_reason":"stop"}]}"#];
    for (before, after, done) in [("data: ", "\n\n", "data: [DONE]\n\n"), ("", "\n", ""), ("", "\r\n", "")] {
        for frames in [&FRAMES[..], &single] {
            let framed = |frame: &&str| format!("{before}{frame}{after}");
            let content: String = frames.iter().map(framed).collect();
            let (sent, wanted) = (format!("{content}{}{done}", framed(&USAGE)), format!("{content}{done}"));
            for (label, has_length) in LABELS.into_iter().flat_map(|label| [(label, false), (label, true)]) {
                for cut in 1..=sent.len() {
                    let (head, tail) = sent.split_at(cut);
                    let (body, is_lost, counts) = received(label, has_length, [head, tail]);
                    let case = format!("{label} {has_length} after {head:?}");
                    assert_eq!(counts, (7, 2), "{case}");
                    // With a length, the head has to be sent after the first bytes, which may be those of one value.
                    let is_hidden = has_length
                        && before.is_empty()
                        && !matches!(
                            label,
                            "text/event-stream" | "application/x-ndjson" | "application/jsonl"
                        )
                        && cut <= framed(&frames[0]).len();
                    assert_eq!(is_lost, is_hidden, "{case}");
                    assert_eq!(body, if is_hidden { &*sent } else { &*wanted }, "{case}");
                }
            }
        }
    }
}

/// A whole answer passes unchanged, even if it looks like the frame that the option adds.
#[test]
fn whole_answer_under_any_label_stays() {
    let whole =
        r#"{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    for body in [whole, USAGE] {
        for (label, has_length) in LABELS.into_iter().flat_map(|label| [(label, false), (label, true)]) {
            if label.contains("ndjson") || label.contains("jsonl") {
                continue;
            }
            for cut in 1..=body.len() {
                let (head, tail) = body.split_at(cut);
                let got = received(label, has_length, [head, tail]);
                assert_eq!(got, (body.to_owned(), false, (7, 2)), "{label} {has_length} after {head:?}");
            }
        }
    }
}
