//! The dialects that count a prompt only, and the unknown dialect.

use super::{lines, scan_every_way, short, stream, whole};
use crate::Dialect::{Embeddings, Rerank, Unknown};
use crate::Framing::Sse;
use crate::{Dialect, Extent, Framing, Scanner, Sink};

#[test]
fn every_name_of_a_prompt_count_is_read() {
    let cases = [
        (
            r#"{"object":"list","model":"m","data":[{"usage":{"prompt_tokens":1},"embedding":[1.5]}],"usage":{"prompt_tokens":5,"total_tokens":6}}"#,
            "whole(in 5) |",
        ),
        (r#"{"usage":{"total_tokens":6},"results":[{"index":0}]}"#, "whole(in 6) |"),
        (r#"{"model":"m","embeddings":[[0.5]],"prompt_eval_count":4}"#, "whole(in 4) |"),
        (
            r#"{"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":8.0},"tokens":{"input_tokens":7.0}}}"#,
            "whole(in 8) |",
        ),
        (r#"{"meta":{"billed_units":{"input_tokens":8.0}}}"#, "whole(in 8) |"),
        (r#"{"usage":{"prompt_tokens":-1,"total_tokens":6}}"#, "whole(in 6 rejected 1) |"),
        (r#"[{"index":0,"embedding":[[0.5]]}]"#, "other |"),
        (r#"{"error":{"code":501,"message":"x"}}"#, "error |"),
        (r#"{"object":"error","message":"x"}"#, "error |"),
        (r#"{"detail":"Not Found"}"#, "other |"),
    ];
    for (body, expected) in cases {
        assert_eq!(whole(Embeddings, body), expected, "{body}");
        assert_eq!(whole(Rerank, body), expected, "{body}");
    }
}

#[test]
fn frames_of_unknown_shape_are_counted() {
    assert_eq!(
        stream(
            Unknown,
            &[r#"{"a":{"error":1}}"#, "plain words", "5", "null", "", "[DONE]", r#"{"error":"x"}"#]
        ),
        "text0/0 | text0/0 | text0/0 | ping | ping | done | error |"
    );
    assert_eq!(lines(Unknown, &[r#"{"model":"m"}"#, "plain"]), "text0/0 | text0/0 |");
    assert_eq!(short(&scan_every_way(Unknown, Sse, "data: {\"a\":1}\n\ndata: {\"a\":1}\n")), "text0/0 | ~");
}

#[test]
fn usage_of_an_unknown_dialect_is_counted() {
    for (body, expected) in [
        (
            r#"{"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#,
            "whole(in 9 out 2 total 11) |",
        ),
        (r#"{"usage":{"input_tokens":9,"output_tokens":2}}"#, "whole(in 9 out 2) |"),
        (r#"{"usage":{"prompt_tokens":9,"total_tokens":9}}"#, "whole(in 9 total 9) |"),
        (r#"{"results":[],"usage":{"total_tokens":9}}"#, "whole(in 9 total 9) |"),
        (
            r#"{"usage":{"input_tokens":9,"cache_read_input_tokens":3,"output_tokens":2}}"#,
            "whole(in 12 cached 3 out 2) |",
        ),
        (r#"{"prompt_eval_count":7,"eval_count":3}"#, "whole(in 7 out 3) |"),
        (r#"{"usage":null}"#, "other |"),
        (r#"{"done":true}"#, "other |"),
        ("no JSON", "other |"),
        (r#"{"error":{"message":"x"},"usage":{"prompt_tokens":9}}"#, "error whole(in 9) |"),
    ] {
        assert_eq!(whole(Unknown, body), expected, "{body}");
    }
    let chats = [
        r#"{"choices":[{"delta":{"content":"a"}}],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
        "[DONE]",
    ];
    assert_eq!(stream(Unknown, &chats), "text0/0 | text0/0 running0(in 9 out 2) | done |");
    let messages = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","usage":{"output_tokens":5}}"#,
    ];
    let expected = "text0/0 running0(in 9) | text0/0 running0(in 9 out 5) |";
    assert_eq!(stream(Unknown, &messages), expected);
    let responses =
        [r#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":5}}}"#];
    assert_eq!(stream(Unknown, &responses), "text0/0 running0(in 9 out 5) |");
}

#[test]
fn object_names_the_dialect_of_an_answer() {
    for (object, dialect) in [
        ("chat.completion", Some(Dialect::OpenaiChat)),
        ("chat.completion.chunk", Some(Dialect::OpenaiChat)),
        ("text_completion", Some(Dialect::OpenaiCompletions)),
        ("response", Some(Dialect::OpenaiResponses)),
        ("list", Some(Embeddings)),
        ("model", None),
    ] {
        let body = format!(r#"{{"object":"{object}"}}"#);
        for (scanned, expected) in [(Unknown, dialect), (Embeddings, None)] {
            let mut scanner = Scanner::new(scanned, Framing::Json);
            scanner.feed(body.as_bytes(), &mut Ignore);
            scanner.end(&mut Ignore);
            assert_eq!(scanner.response_dialect(), expected, "{body}");
        }
    }
}

/// A sink that ignores everything.
struct Ignore;

impl Sink for Ignore {
    fn event(&mut self, _event: crate::Event) {}

    fn frame(&mut self, _extent: Extent) {}
}

#[test]
fn unknown_number_of_an_embedding_is_not_its_prompt() {
    let body = r#"{"usageMetadata":{"totalTokenCount":5}}"#;
    assert_eq!(whole(Embeddings, body), "unknown(totalTokenCount) other |");
}
