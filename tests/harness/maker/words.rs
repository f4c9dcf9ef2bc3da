//! The constants of generated bodies.

use scan::Dialect;

/// Contents of strings.
pub(super) const STRINGS: [&str; 20] = [
    "a",
    "",
    "Hello",
    " world",
    "\\n",
    "\\\"usage\\\":{\\\"completion_tokens\\\":9}",
    "\\u00e9\\ud83d\\ude00",
    "é😀",
    "\\\\",
    "\\\\\\\"",
    "}]}",
    "data: x",
    "[DONE]",
    "assistant",
    "stop",
    "length",
    "error",
    "tool_calls",
    "\\/\\b\\f",
    "limit",
];

/// Numbers; the first five are ordinary.
pub(super) const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "7",
    "31",
    "12.0",
    "1e3",
    "-1",
    "1.5",
    "-0",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551616",
    "4294967296",
    "100000000000000",
    "0.1e1",
];

/// Values that are neither strings nor numbers.
pub(super) const OTHERS: [&str; 5] = ["null", "true", "false", "{}", "[]"];

/// Token frames of chats.
const CHAT_FRAMES: [&str; 7] = [
    r#"{"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"total_tokens":10,"completion_tokens":1}}"#,
    r#"{"choices":[{"index":1,"delta":{"reasoning":"a"},"logprobs":null,"token_ids":[7]}]}"#,
    r#"{"choices":[{"index":1,"delta":{"reasoning":"a"}}],"usage":{"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":1}}}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}}]}"#,
    r#"{"index":5,"choices":[{"delta":{"content":"a"},"index":0,"index":1}],"usage":null}"#,
    r#"{"choices":[{"index":2}],"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1},"usage":{"completion_tokens":1}}"#,
];

/// Token frames of completions.
const TEXT_FRAMES: [&str; 2] = [
    r#"{"id":"x","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"text":"a","logprobs":{"tokens":["a"]},"index":0}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
];

/// Token frames of llama.cpp's own dialect.
const NATIVE_FRAMES: [&str; 3] = [
    r#"{"index":0,"content":"a","tokens":[7],"stop":false,"id_slot":-1,"tokens_predicted":4,"tokens_evaluated":7}"#,
    r#"{"content":"a","stop":false,"tokens_predicted":4}"#,
    r#"[{"index":1,"content":"a","tokens":[7],"tokens_predicted":4,"tokens_predicted":5}]"#,
];

/// The frames with a dialect's tokens.
pub(super) fn token_frames(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::OpenaiChat => &CHAT_FRAMES,
        Dialect::OpenaiCompletions => &TEXT_FRAMES,
        Dialect::LlamacppCompletion => &NATIVE_FRAMES,
        Dialect::OpenaiResponses => &[
            r#"{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","delta":"a","logprobs":[]}"#,
            r#"{"content_index":0,"delta":"a","sequence_number":6,"type":"response.reasoning_text.delta"}"#,
            r#"{"delta":"a","type":"response.function_call_arguments.delta"}"#,
            r#"{"type":"response.output_text.delta","delta":"a","logprobs":[{"token":"a"}],"model":"m"}"#,
        ],
        Dialect::Anthropic => &[
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"},"index":0}"#,
            r#"{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json":"a"}}"#,
        ],
        Dialect::Tgi => &[
            r#"{"index":3,"token":{"id":311,"text":"a","logprob":-0.2,"special":false},"generated_text":null,"details":null}"#,
            r#"{"token":{"text":"a"},"index":1}"#,
        ],
        Dialect::Sglang => &[
            r#"{"text":"a","output_ids":[8],"meta_info":{"id":"r1","finish_reason":null,"prompt_tokens":5,"completion_tokens":1}}"#,
            r#"{"text":"a","meta_info":{"completion_tokens":1},"index":0}"#,
        ],
        Dialect::Lmdeploy => &[
            r#"{"text":"a","output_ids":[311],"meta_info":{"finish_reason":null,"prompt_tokens":5,"completion_tokens":3}}"#,
        ],
        Dialect::OllamaChat => &[
            r#"{"model":"elm:1b","message":{"role":"assistant","content":"a"},"done":false}"#,
            r#"{"model":"elm:1b","message":{"role":"assistant","content":"","thinking":"a"},"done":false}"#,
        ],
        Dialect::OllamaGenerate => &[r#"{"model":"elm:1b","response":"a","done":false}"#],
        Dialect::Triton => &[r#"{"model_name":"m","model_version":"1","text_output":"a"}"#],
        Dialect::VllmGenerate => &[
            r#"{"request_id":"r","usage":null,"choices":[{"index":0,"token_ids":[5,6],"finish_reason":null,"logprobs":null}]}"#,
        ],
        Dialect::Gemini => &[
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}],"usageMetadata":{"thoughtsTokenCount":3},"modelVersion":"m"}"#,
        ],
        Dialect::GeminiInteractions => &[
            r#"{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta"}"#,
            r#"{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"a"}}}"#,
            r#"{"event_type":"step.delta","delta":{"arguments":"a","type":"arguments_delta"}}"#,
        ],
        Dialect::Cohere => &[
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}"#,
            r#"{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"a"}}}}}"#,
        ],
        Dialect::BedrockConverse => &[
            r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#,
            r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":"a"}},"p":"abcd"}"#,
        ],
        Dialect::Transcription => &[
            r#"{"id":"trsc-1","choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"type":"transcript.text.delta","delta":"a"}"#,
        ],
        Dialect::Realtime => &[
            r#"{"type":"response.output_text.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"a"}"#,
            r#"{"type":"transcription.delta","delta":"a"}"#,
        ],
        Dialect::Embeddings | Dialect::Rerank => &[
            r#"{"object":"list","data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":5,"total_tokens":5}}"#,
        ],
        Dialect::Unknown => &[r#"{"anything":"a"}"#, "no JSON at all"],
    }
}

/// Look-alikes of known members.
pub(super) const LOOK_ALIKES: [&str; 14] = [
    r#""metadata":{"usage":{"completion_tokens":99},"choices":[{"delta":{"content":"no"}}]}"#,
    r#""Usage":{"prompt_tokens":1}"#,
    r#""usage ":{"prompt_tokens":1}"#,
    r#""obj":{"error":{"message":"no"}}"#,
    r#""a":[[{"index":4}],{"finish_reason":"stop"}]"#,
    r#""created":1790000000"#,
    r#""id":"chatcmpl-x""#,
    r#""service_tier":null"#,
    r#""generation_settings":{"stop":[],"n_predict":24,"content":"x"}"#,
    r#""completion_tokens":5"#,
    r#""echo":{"type":"message_stop","delta":{"text":"no","stop_reason":"end_turn"},"done":true,"eval_count":9}"#,
    r#""extra":[{"response":{"usage":{"output_tokens":9}},"message":{"usage":{"input_tokens":9},"content":"no"}}]"#,
    r#""outer":{"meta_info":{"completion_tokens":9},"usageMetadata":{"candidatesTokenCount":9},"token":{"text":"no"}}"#,
    r#""Type":"response.completed""#,
];
