//! Vectors of the wire formats, by number: errors inside a body.

use super::{scan_every_way, short, stream, whole};
use crate::Dialect::{Anthropic, Gemini, OpenaiChat as Chat};
use crate::{Dialect, Framing};

fn sse(dialect: Dialect, body: &str) -> String {
    short(&scan_every_way(dialect, Framing::Sse, body))
}

#[test]
fn an_error_after_some_deltas() {
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
    for error in [
        r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
        // llama.cpp sends no more than this.
        r#"{"code":500,"message":"x","type":"server_error"}"#,
    ] {
        let body = format!("{}event: error\ndata: {error}\n\n", delta.repeat(5));
        assert_eq!(sse(Anthropic, &body), format!("{}error |", "text0/1 | ".repeat(5)));
    }
}

#[test]
fn geminis_error_without_data() {
    let error = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"x\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";
    let text = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n";
    assert_eq!(sse(Gemini, &format!("{text}{error}\n")), "text0/1 | error |");
    assert_eq!(sse(Gemini, &format!("{text}{error}")), "text0/1 | error ~");
    for dialect in Dialect::ALL {
        assert_eq!(sse(dialect, &format!("{error}\n")), "error |", "{dialect:?}");
    }
    // A separate block: the next one is unaffected.
    assert_eq!(sse(Gemini, &format!("{error}\n{text}")), "error | text0/1 |");
}

#[test]
fn an_error_in_a_comment() {
    assert_eq!(sse(Chat, "event: error\n: boom\n\n"), "ping error |");
    for dialect in Dialect::ALL {
        assert_eq!(sse(dialect, "event: error\n\n"), "error |", "{dialect:?}");
    }
}

#[test]
fn a_swallowed_error() {
    let frame = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
    assert_eq!(stream(Chat, &[frame]), "error role0 |");
}

#[test]
fn an_error_and_a_good_end() {
    let error =
        r#"{"error": {"message": "boom", "type": "InternalServerError", "param": null, "code": 500}}"#;
    assert_eq!(stream(Chat, &[error, "[DONE]"]), "error | done |");
}

#[test]
fn an_error_in_one_word() {
    for dialect in Dialect::ALL {
        assert_eq!(whole(dialect, r#"{"error":"Unauthorized"}"#), "error |", "{dialect:?}");
        assert_ne!(whole(dialect, r#"{"error":""}"#), "error |", "{dialect:?}");
    }
}
