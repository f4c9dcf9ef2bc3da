//! Laws over arbitrary bodies: for any dialect and bytes, neither the slicing nor shape matching changes
//! the events, and nothing panics.

use proptest::prelude::*;

use super::{scan, walk};
use crate::{Dialect, Framing};

/// Members and values of every dialect, to be combined at random.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u00e9",
    "\\ud83d",
    "null",
    "true",
    "0",
    "1",
    "12.0",
    "-1",
    "1e3",
    "NaN",
    "x",
    "é",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "data: ",
    "data: {",
    "event: error\n",
    ": c\n",
    "[DONE]",
    "\"type\":",
    "\"message_start\"",
    "\"content_block_delta\"",
    "\"message_delta\"",
    "\"content-delta\"",
    "\"message-end\"",
    "\"response.completed\"",
    "\"response.output_text.delta\"",
    "\"transcript.text.done\"",
    "\"delta\":",
    "\"text\":",
    "\"message\":{",
    "\"response\":{",
    "\"usage\":{",
    "\"content\":",
    "\"choices\":[",
    "\"candidates\":[",
    "\"parts\":[",
    "\"thought\":",
    "\"usageMetadata\":{",
    "\"promptTokenCount\":1",
    "\"meta_info\":{",
    "\"completion_tokens\":3",
    "\"output_ids\":[1,2]",
    "\"finish_reason\":\"stop\"",
    "\"details\":{",
    "\"generated_text\":\"a\"",
    "\"token\":{",
    "\"done\":true",
    "\"done_reason\":\"load\"",
    "\"response\":\"a\"",
    "\"error\":\"a\"",
    "\"index\":1",
    "\"model\":\"m\"",
    "\"model\":\"\"",
    "\"input_tokens\":5",
    "\"output_tokens\":7",
    "\"status\":\"incomplete\"",
    "\"output\":[",
    "\"eval_duration\":5",
    "\"text_output\":\"a\"",
];

/// Frames with the variable values of a shape.
const FRAMES: &[&str] = &[
    r#"{"type":"response.output_text.delta","sequence_number":N,"delta":"T"}"#,
    r#"{"delta":"T","type":"response.refusal.delta","sequence_number":N,"logprobs":[{}]}"#,
    r#"{"type":"content_block_delta","index":N,"delta":{"type":"text_delta","text":"T"}}"#,
    r#"{"type":"content-delta","index":N,"delta":{"message":{"content":{"text":"T"}}}}"#,
    r#"{"type":"transcript.text.delta","delta":"T"}"#,
    r#"{"choices":[{"index":N,"delta":{"content":"T"}}],"usage":{"prompt_tokens":N,"completion_tokens":N}}"#,
    r#"{"choices":[{"index":N,"delta":{"content":"T"},"output_ids":[N,N]}],"model":"M"}"#,
    r#"{"candidates":[{"index":N,"content":{"parts":[{"text":"T"}]}}],"usageMetadata":{"promptTokenCount":N,"candidatesTokenCount":N,"thoughtsTokenCount":N}}"#,
    r#"{"index":N,"token":{"id":N,"text":"T","special":false},"generated_text":null,"details":null}"#,
    r#"{"index":N,"text":"T","output_ids":[N],"meta_info":{"finish_reason":null,"prompt_tokens":N,"completion_tokens":N}}"#,
    r#"{"index":N,"content":"T","tokens":[N],"stop":false,"tokens_predicted":N,"tokens_evaluated":N}"#,
    r#"{"text":"T","meta_info":{"completion_tokens":N}}"#,
    r#"{"model_name":"m","text_output":"T"}"#,
];

fn dialect() -> impl Strategy<Value = Dialect> {
    proptest::sample::select(&Dialect::ALL[..])
}

/// Any words in any order yield the same events for any slicing.
#[test]
fn slicing_never_changes_the_events() {
    let framing = proptest::sample::select(&[Framing::Sse, Framing::Ndjson, Framing::Json][..]);
    let words = proptest::collection::vec(proptest::sample::select(WORDS), 0..60);
    proptest!(chance::cases(4000), |(dialect in dialect(), framing in framing, words in words, step in 1_usize..9, cut in 0.0..1.0)| {
        let body = format!("data: {{{}", words.concat()).into_bytes();
        let body = if framing == Framing::Sse { &body[..] } else { &body[6..] };
        let expected = walk(dialect, framing, body);
        let (head, tail) = body.split_at((body.len() as f64 * cut) as usize);
        prop_assert_eq!(&scan(dialect, framing, [body].into_iter()), &expected);
        prop_assert_eq!(&scan(dialect, framing, [head, tail].into_iter()), &expected);
        prop_assert_eq!(&scan(dialect, framing, body.chunks(step)), &expected);
    });
}

/// Frames read by their shape yield the same events as frames that are walked.
#[test]
fn a_shape_is_exact_in_every_dialect() {
    let fills = proptest::collection::vec((0..FRAMES.len(), 0_u32..20, "[a-zé\\\\\"n]{0,4}"), 1..12);
    proptest!(chance::cases(4000), |(dialect in dialect(), fills in fills, one in 0..FRAMES.len(), model in "[a]{0,1}")| {
        let mut body = String::new();
        for (n, (frame, number, text)) in fills.iter().enumerate() {
            // Most frames are of one shape.
            let frame = if n % 4 == 3 { FRAMES[*frame] } else { FRAMES[one] };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            let frame = frame.replace('N', &number.to_string()).replace('T', &text).replace('M', &model);
            body.push_str(&format!("data: {frame}\n\n"));
        }
        let expected = walk(dialect, Framing::Sse, body.as_bytes());
        prop_assert_eq!(&scan(dialect, Framing::Sse, [body.as_bytes()].into_iter()), &expected, "{}", body);
        prop_assert_eq!(&scan(dialect, Framing::Sse, body.as_bytes().chunks(700)), &expected, "{}", body);
    });
}
