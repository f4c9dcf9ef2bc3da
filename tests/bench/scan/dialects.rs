//! One token frame of every dialect, as its server writes it. A dialect without streams is read as whole bodies.

use scan::{Dialect, Framing};

/// A dialect's framing and its frame with number `index`.
pub(crate) type Frame = (Dialect, Framing, fn(usize, &str) -> String);

/// One for each dialect that streams.
pub(crate) const FRAMES: [Frame; 19] = [
    (Dialect::OpenaiChat, Framing::Sse, |_, word| {
        sse(&format!(
            r#"{{"id":"chatcmpl-a582432ceccb182d","object":"chat.completion.chunk","created":1795220672,"model":"tiny","choices":[{{"index":0,"delta":{{"content":"{word}"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}"#
        ))
    }),
    (Dialect::OpenaiCompletions, Framing::Sse, |_, word| {
        sse(&format!(
            r#"{{"id":"cmpl-88f9f80a22dd0aa2","object":"text_completion","created":1795220798,"model":"tiny","choices":[{{"index":0,"text":"{word}","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":null}}]}}"#
        ))
    }),
    (Dialect::OpenaiResponses, Framing::Sse, |index, word| {
        format!(
            "event: response.output_text.delta\ndata: {{\"content_index\":0,\"delta\":\"{word}\",\"item_id\":\"msg_9d441ba88ab1e046\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":{index},\"type\":\"response.output_text.delta\"}}\n\n"
        )
    }),
    (Dialect::Anthropic, Framing::Sse, |_, word| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}},\"index\":0}}\n\n"
        )
    }),
    (Dialect::LlamacppCompletion, Framing::Sse, |index, word| {
        sse(&format!(
            r#"{{"index":0,"content":"{word}","tokens":[{}],"stop":false,"id_slot":-1,"tokens_predicted":{},"tokens_evaluated":7}}"#,
            400 + index,
            index + 1
        ))
    }),
    (Dialect::Tgi, Framing::Sse, |index, word| {
        sse(&format!(
            r#"{{"index":{},"token":{{"id":{},"text":"{word}","logprob":-0.2,"special":false}},"generated_text":null,"details":null}}"#,
            index + 1,
            300 + index
        ))
    }),
    (Dialect::Sglang, Framing::Sse, |index, word| {
        // The text so far; a server with `skip_special_tokens` off would send the ids so far too.
        sse(&format!(
            r#"{{"text":"{}{word}","meta_info":{{"id":"r1","finish_reason":null,"prompt_tokens":5,"completion_tokens":{},"cached_tokens":0,"weight_version":"v0"}}}}"#,
            "so far ".repeat(20),
            index + 1
        ))
    }),
    (Dialect::Lmdeploy, Framing::Sse, |index, word| {
        sse(&format!(
            r#"{{"text":"{word}","output_ids":[{}],"meta_info":{{"finish_reason":null,"prompt_tokens":5,"completion_tokens":{},"output_token_logprobs":null,"routed_experts":null}}}}"#,
            300 + index,
            index + 1
        ))
    }),
    (Dialect::OllamaChat, Framing::Ndjson, |_, word| {
        format!(
            "{{\"model\":\"elm:1b\",\"created_at\":\"2026-01-01T00:00:00.123456Z\",\"message\":{{\"role\":\"assistant\",\"content\":\"{word}\"}},\"done\":false}}\n"
        )
    }),
    (Dialect::OllamaGenerate, Framing::Ndjson, |_, word| {
        format!(
            "{{\"model\":\"elm:1b\",\"created_at\":\"2026-01-01T00:00:00.123456Z\",\"response\":\"{word}\",\"done\":false}}\n"
        )
    }),
    (Dialect::Triton, Framing::Sse, |_, word| {
        sse(&format!(r#"{{"model_name":"ens","model_version":"1","text_output":"{word}"}}"#))
    }),
    (Dialect::VllmGenerate, Framing::Sse, |index, _| {
        sse(&format!(
            r#"{{"request_id":"r","usage":null,"choices":[{{"index":0,"token_ids":[{}],"finish_reason":null,"logprobs":null}}],"output_mode":"tokens"}}"#,
            300 + index
        ))
    }),
    (Dialect::Gemini, Framing::Sse, |index, word| {
        sse(&format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{word}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":5,"candidatesTokenCount":{},"totalTokenCount":{}}},"modelVersion":"m-001","responseId":"x"}}"#,
            index + 1,
            index + 6
        ))
    }),
    (Dialect::GeminiInteractions, Framing::Sse, |_, word| {
        sse(&format!(r#"{{"index":1,"delta":{{"text":"{word}","type":"text"}},"event_type":"step.delta"}}"#))
    }),
    (Dialect::Cohere, Framing::Sse, |_, word| {
        sse(&format!(
            r#"{{"type":"content-delta","index":0,"delta":{{"message":{{"content":{{"text":"{word}"}}}}}}}}"#
        ))
    }),
    (Dialect::BedrockConverse, Framing::Ndjson, |index, word| {
        let padding = &"abcdefghijklmno"[..1 + index % 15];
        format!("{{\"contentBlockIndex\":0,\"delta\":{{\"text\":\"{word}\"}},\"p\":\"{padding}\"}}\n")
    }),
    (Dialect::Transcription, Framing::Sse, |_, word| {
        sse(&format!(
            r#"{{"id":"trsc-1","object":"transcription.chunk","created":1795220672,"model":"tiny","choices":[{{"delta":{{"content":"{word}"}},"finish_reason":null}}]}}"#
        ))
    }),
    (Dialect::Realtime, Framing::Ndjson, |_, word| {
        format!(
            "{{\"type\":\"response.output_text.delta\",\"event_id\":\"event_1\",\"response_id\":\"resp_1\",\"item_id\":\"item_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"{word}\"}}\n"
        )
    }),
    (Dialect::Unknown, Framing::Sse, |_, word| sse(&format!(r#"{{"piece":"{word}"}}"#))),
];

fn sse(payload: &str) -> String {
    format!("data: {payload}\n\n")
}
