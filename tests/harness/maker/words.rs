//! What made bodies are made of.

/// Insides of strings.
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

/// What is neither.
pub(super) const OTHERS: [&str; 5] = ["null", "true", "false", "{}", "[]"];

/// Token frames of chats.
pub(super) const CHAT_FRAMES: [&str; 7] = [
    r#"{"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"total_tokens":10,"completion_tokens":1}}"#,
    r#"{"choices":[{"index":1,"delta":{"reasoning":"a"},"logprobs":null,"token_ids":[7]}]}"#,
    r#"{"choices":[{"index":1,"delta":{"reasoning":"a"}}],"usage":{"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":1}}}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}}]}"#,
    r#"{"index":5,"choices":[{"delta":{"content":"a"},"index":0,"index":1}],"usage":null}"#,
    r#"{"choices":[{"index":2}],"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1},"usage":{"completion_tokens":1}}"#,
];

/// Token frames of completions.
pub(super) const TEXT_FRAMES: [&str; 2] = [
    r#"{"id":"x","choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":null}],"usage":null}"#,
    r#"{"choices":[{"text":"a","logprobs":{"tokens":["a"]},"index":0}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
];

/// Token frames of llama.cpp's own dialect.
pub(super) const NATIVE_FRAMES: [&str; 3] = [
    r#"{"index":0,"content":"a","tokens":[7],"stop":false,"id_slot":-1,"tokens_predicted":4,"tokens_evaluated":7}"#,
    r#"{"content":"a","stop":false,"tokens_predicted":4}"#,
    r#"[{"index":1,"content":"a","tokens":[7],"tokens_predicted":4,"tokens_predicted":5}]"#,
];

/// Members that only look like those that are looked for.
pub(super) const LOOK_ALIKES: [&str; 10] = [
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
];
