//! The id of a response.

use super::scan_every_way;
use crate::{Dialect, Framing};

fn id(dialect: Dialect, payloads: &[&str]) -> String {
    let body: String = payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect();
    scan_every_way(dialect, Framing::Sse, &body).id
}

#[test]
fn every_dialect_has_its_id() {
    for (dialect, frame, expected) in [
        (
            Dialect::OpenaiChat,
            r#"{"id":"a","choices":[{"id":"no","delta":{"tool_calls":[{"id":"no"}]}}]}"#,
            "a",
        ),
        (Dialect::OpenaiCompletions, r#"{"choices":[{"text":"x"}],"id":"a"}"#, "a"),
        (Dialect::OpenaiResponses, r#"{"type":"response.created","response":{"id":"resp_1"}}"#, "resp_1"),
        (Dialect::OpenaiResponses, r#"{"type":"response.output_item.added","item":{"id":"no"}}"#, ""),
        (Dialect::Anthropic, r#"{"type":"message_start","message":{"id":"msg_1","usage":{}}}"#, "msg_1"),
        (Dialect::Anthropic, r#"{"type":"content_block_start","content_block":{"id":"no"}}"#, ""),
        (Dialect::Cohere, r#"{"type":"message-start","id":"c","delta":{"message":{}}}"#, "c"),
        (Dialect::Gemini, r#"{"candidates":[],"responseId":"g"}"#, "g"),
        (
            Dialect::GeminiInteractions,
            r#"{"event_type":"interaction.created","interaction":{"id":"v1_a"}}"#,
            "v1_a",
        ),
        (Dialect::Sglang, r#"{"text":"a","meta_info":{"id":"r1","completion_tokens":1}}"#, "r1"),
        (Dialect::VllmGenerate, r#"{"request_id":"v","choices":[{"token_ids":[1]}]}"#, "v"),
        (Dialect::Embeddings, r#"{"id":"embd-1","usage":{"prompt_tokens":1}}"#, "embd-1"),
        (Dialect::Tgi, r#"{"index":1,"token":{"id":311,"text":"a"}}"#, ""),
        (Dialect::OllamaChat, r#"{"id":"no","message":{"content":"a"},"done":false}"#, ""),
    ] {
        assert_eq!(id(dialect, &[frame]), expected, "{frame}");
    }
}

#[test]
fn the_first_valid_id_counts() {
    let long = format!(r#"{{"id":"{}","choices":[]}}"#, "x".repeat(129));
    let longest = format!(r#"{{"id":"{}","choices":[]}}"#, "y".repeat(128));
    let (empty, none) = (r#"{"id":"","choices":[]}"#, r#"{"id":null,"choices":[]}"#);
    let (first, second) = (r#"{"id":"a","choices":[]}"#, r#"{"id":"b","choices":[]}"#);
    assert_eq!(id(Dialect::OpenaiChat, &[empty, none, first, second]), "a");
    assert_eq!(id(Dialect::OpenaiChat, &[&long, second]), "b", "half an id is no id");
    assert_eq!(id(Dialect::OpenaiChat, &[&longest]), "y".repeat(128));
    assert_eq!(id(Dialect::OpenaiChat, &[r#"{"id":7,"choices":[]}"#]), "");
}
