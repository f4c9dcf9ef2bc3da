//! Vectors of the wire formats, by number: framing, and JSON inside frames. (34, 35
//! and parts of 39 and 41 concern an editor or a connection, not a scanner.)

use super::{lines, scan_every_way, short, stream, whole};
use crate::Dialect::{Anthropic, OllamaChat, OpenaiChat as Chat, OpenaiResponses as Responses};
use crate::{Dialect, Framing, RequestScanner, Tail};

fn sse(dialect: Dialect, body: &str) -> String {
    short(&scan_every_way(dialect, Framing::Sse, body))
}

#[test]
fn no_space_after_the_colon() {
    let body = "data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
    assert_eq!(sse(Chat, body), "text0/1 |");
}

#[test]
fn comments_are_pings() {
    assert_eq!(sse(Chat, ":\n\n: keep-alive\n\n:\t\n\n"), "ping ping ping");
}

#[test]
fn done_ends_the_stream() {
    for body in ["data: [DONE]\n\n", "data:[DONE]\n\n"] {
        assert_eq!(sse(Chat, body), "done |");
    }
    let torn = scan_every_way(Chat, Framing::Sse, "data: [DONE]");
    assert_eq!(short(&torn), "done ~");
    assert_eq!(torn.tail, Some(Tail { torn: true, whole: false }));
}

#[test]
fn usage_in_a_string_is_text() {
    let frame = r#"{"choices":[{"index":0,"delta":{"content":"\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":999}"}}],"usage":null}"#;
    assert_eq!(stream(Chat, &[frame]), "text0/51 |");
}

#[test]
fn usage_in_tool_arguments_is_text() {
    let line = r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"usage":{"prompt_tokens":7},"done":true,"eval_count":99}}}]},"done":false}"#;
    assert_eq!(lines(OllamaChat, &[line]), "tool0/1 |");
}

#[test]
fn usage_before_the_choices() {
    let frame = r#"{"usage":{"total_tokens":3,"completion_tokens":1,"prompt_tokens":2},"choices":[]}"#;
    assert_eq!(stream(Chat, &[frame]), "whole(in 2 out 1 total 3) |");
}

#[test]
fn the_last_of_two_members_counts() {
    let frame = r#"{"usage":{"completion_tokens":1},"usage":{"completion_tokens":2},"choices":[]}"#;
    assert_eq!(stream(Chat, &[frame]), "whole(out 2) |");
}

#[test]
fn an_escaped_key() {
    let frame = r#"{"us\u0061ge":{"prompt_tokens":1,"completion_tokens":1},"choices":[]}"#;
    assert_eq!(stream(Chat, &[frame]), "whole(in 1 out 1) |");
}

#[test]
fn backslashes_before_a_quote() {
    let frame =
        r#"{"choices":[{"delta":{"content":"\\\\"}}],"usage":{"prompt_tokens":4,"completion_tokens":2}}"#;
    assert_eq!(stream(Chat, &[frame]), "text0/2 running0(in 4 out 2) |");
}

#[test]
fn body_end_ends_lines_not_blocks() {
    let body =
        "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"message\":{\"content\":\"\"},\"done\":true}";
    let seen = scan_every_way(OllamaChat, Framing::Ndjson, body);
    assert_eq!(
        (short(&seen).as_str(), seen.tail),
        ("text0/1 | stop0 |", Some(Tail { torn: false, whole: true }))
    );
    let body = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n";
    assert_eq!(sse(Anthropic, body), "stop0 whole(out 3) ~");
    let body = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n";
    assert_eq!(sse(Anthropic, body), "~");
    let body = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}";
    assert_eq!(sse(Responses, body), "stop0 done ~");
}

#[test]
fn a_space_after_the_payload() {
    let frame = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]} "#;
    assert_eq!(stream(Chat, &[frame]), "role0 |");
}

#[test]
fn null_and_empty_are_pings() {
    assert_eq!(sse(Chat, "data: null\n\ndata\n\n"), "ping | ping |");
}

#[test]
fn a_stream_answered_with_one_body() {
    let body = r#"{"error":{"message":"max_tokens","type":"BadRequestError","param":null,"code":400}}"#;
    for dialect in Dialect::ALL {
        assert_eq!(whole(dialect, body), "error |", "{dialect:?}");
    }
}

#[test]
fn three_megabytes_before_the_usage() {
    let long = "x".repeat(3 << 20);
    let body = format!(
        "event: response.image_generation_call.partial_image\ndata: {{\"type\":\"response.image_generation_call.partial_image\",\"partial_image_b64\":\"{long}\"}}\n\n\
         event: response.completed\ndata: {{\"response\":{{\"output\":[{{\"content\":[{{\"text\":\"{long}\"}}]}}],\"status\":\"completed\",\"usage\":{{\"input_tokens\":1,\"output_tokens\":7}}}},\"type\":\"response.completed\"}}\n\n"
    );
    for step in [1460, 65536, usize::MAX] {
        let seen = super::scan(Responses, Framing::Sse, body.as_bytes().chunks(step));
        assert_eq!(short(&seen), "meta | stop0 choice(in 1 out 7) done |", "in steps of {step}");
    }
}

#[test]
fn an_echoed_schema_ends_nothing() {
    let frame = r#"{"type":"response.created","response":{"status":"in_progress","usage":null,"tools":[{"parameters":{"properties":{"usage":{"input_tokens":7},"output_tokens":{"type":"integer"},"status":"completed"}}}],"error":null},"sequence_number":0}"#;
    assert_eq!(stream(Responses, &[frame]), "progress |");
}

#[test]
fn characters_of_several_bytes() {
    let raw = r#"{"choices":[{"delta":{"content":"é😀"}}]}"#;
    let escaped = r#"{"choices":[{"delta":{"content":"\u00e9\ud83d\ude00"}}]}"#;
    assert_eq!(stream(Chat, &[raw, escaped]), "text0/2 | text0/2 |");
}

#[test]
fn a_byte_order_mark() {
    let frame = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    assert_eq!(sse(Chat, &format!("\u{FEFF}{frame}\u{FEFF}{frame}{frame}")), "text0/1 | text0/1 |");
}

#[test]
fn a_payload_of_several_lines() {
    let body = "data: {\ndata: \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1},\"choices\":[]}\n\n";
    assert_eq!(sse(Chat, body), "whole(in 1 out 1) |");
}

#[test]
fn ten_thousand_empty_frames() {
    let mut body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n".repeat(10_000);
    body.push_str("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":7}}\n\n");
    for step in [1, 1460, usize::MAX] {
        let seen = super::scan(Chat, Framing::Sse, body.as_bytes().chunks(step));
        assert_eq!(short(&seen), format!("{}whole(in 1 out 7) |", "empty0 | ".repeat(10_000)));
    }
}

#[test]
fn numbers_that_are_no_json() {
    let frame = r#"{"choices":[{"index":0,"logprobs":{"content":[{"logprob":NaN},{"logprob":-Infinity}]},"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":7}}"#;
    assert_eq!(stream(Chat, &[frame]), "text0/1=2 running0(in 1 out 7) |");
}

#[test]
fn a_depth_bomb() {
    let body = format!("data: {}\n\ndata: [DONE]\n\n", "[".repeat(100_000));
    for dialect in Dialect::ALL {
        let expected = if dialect == Dialect::Unknown { "text0/0" } else { "other" };
        for step in [4096, usize::MAX] {
            let seen = super::scan(dialect, Framing::Sse, body.as_bytes().chunks(step));
            assert_eq!(short(&seen), format!("{expected} | done |"), "{dialect:?}");
        }
    }
}

#[test]
fn usage_options_of_a_request() {
    for (body, stream, include_usage) in [
        (r#"{"stream_options":null,"stream":true}"#, Some(true), None),
        (r#"{"stream":true,"stream_options":{"include_usage":false}}"#, Some(true), Some(false)),
        (r#"{"stream":false}"#, Some(false), None),
    ] {
        let mut scanner = RequestScanner::new();
        scanner.feed(body.as_bytes());
        let request = scanner.end();
        assert_eq!((request.stream, request.include_usage), (stream, include_usage), "{body}");
    }
}
