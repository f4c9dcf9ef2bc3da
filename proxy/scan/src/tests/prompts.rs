//! The dialects that count a prompt only, and the one nothing is known of.

use super::{lines, says, short, stream, whole};
use crate::Dialect::{Embeddings, Rerank, Unknown};
use crate::Framing::Sse;

#[test]
fn a_prompt_has_many_names() {
    let cases = [
        (
            r#"{"object":"list","model":"m","data":[{"usage":{"prompt_tokens":1},"embedding":[1.5]}],"usage":{"prompt_tokens":5,"total_tokens":6}}"#,
            "whole(in 5) |",
        ),
        (r#"{"usage":{"total_tokens":6},"results":[{"index":0}]}"#, "whole(in 6) |"),
        (r#"{"model":"m","embeddings":[[0.5]],"prompt_eval_count":4}"#, "whole(in 4) |"),
        (
            r#"{"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":8.0},"tokens":{"input_tokens":7.0}}}"#,
            "whole(in 7) |",
        ),
        (r#"{"meta":{"billed_units":{"input_tokens":8.0}}}"#, "whole(in 8) |"),
        (r#"{"usage":{"prompt_tokens":-1,"total_tokens":6}}"#, "whole(in 6 rejected 1) |"),
        (r#"[{"index":0,"embedding":[[0.5]]}]"#, "other |"),
        (r#"{"error":{"code":501,"message":"x"}}"#, "error |"),
        (r#"{"object":"error","message":"x"}"#, "error |"),
        (r#"{"detail":"Not Found"}"#, "other |"),
    ];
    for (body, said) in cases {
        assert_eq!(whole(Embeddings, body), said, "{body}");
        assert_eq!(whole(Rerank, body), said, "{body}");
    }
}

#[test]
fn frames_of_no_known_shape_are_counted() {
    assert_eq!(
        stream(
            Unknown,
            &[r#"{"a":{"error":1}}"#, "plain words", "5", "null", "", "[DONE]", r#"{"error":"x"}"#]
        ),
        "text0/0 | text0/0 | text0/0 | ping | ping | done | error |"
    );
    assert_eq!(lines(Unknown, &[r#"{"model":"m"}"#, "plain"]), "text0/0 | text0/0 |");
    assert_eq!(short(&says(Unknown, Sse, "data: {\"a\":1}\n\ndata: {\"a\":1}\n")), "text0/0 | ~");
}
