//! Streams of dialects whose frames are answers, or lists of them.

use scan::Dialect::{
    Gemini, Lmdeploy, OllamaChat, OllamaGenerate, Sglang, Tgi, Triton, Unknown, VllmGenerate,
};
use scan::Framing::{Ndjson, Sse};

use super::Vector;

/// Streams of dialects whose frames are answers, or lists of them.
pub(super) const NATIVE: &[Vector] = &[
    (
        "SGLang repeats the whole answer",
        Sglang,
        Sse,
        r#"data: {"text":"A","output_ids":[8],"meta_info":{"id":"r","finish_reason":null,"prompt_tokens":5,"completion_tokens":1}}

data: {"text":"A red","output_ids":[8,40],"meta_info":{"finish_reason":null,"prompt_tokens":5,"completion_tokens":2}}

data: {"text":"A red ox","output_ids":[8,40,311],"meta_info":{"finish_reason":{"type":"length","length":3},"prompt_tokens":5,"completion_tokens":3,"cached_tokens":4,"e2e_latency":0.4}}

data: [DONE]

"#,
        "text0/1=1 running0(in 5 out 1) | text0/4=1 running0(in 5 out 2) | text0/3=1 finish0:length choice0(in 5 cached 4 out 3) | done |",
    ),
    (
        "SGLang: two interleaved answers, one of them repeated",
        Sglang,
        Sse,
        r#"data: {"index":0,"text":"ab","output_ids":[1,2],"meta_info":{"completion_tokens":2}}

data: {"index":1,"text":"x","output_ids":[1],"meta_info":{"completion_tokens":1}}

data: {"index":0,"text":"abc","output_ids":[1,2,3],"meta_info":{"completion_tokens":3}}

data: {"index":1,"text":"x","output_ids":[1],"meta_info":{"completion_tokens":1,"finish_reason":{"type":"abort"}}}

data: {"index":0,"text":"abc","output_ids":[1,2,3],"meta_info":{"completion_tokens":3}}

"#,
        "text0/2=2 running0(out 2) | text1/1=1 running1(out 1) | text0/1=1 running0(out 3) | finish1:abort choice1(out 1) | empty0=0 running0(out 3) |",
    ),
    (
        "SGLang: text that shrinks is not negative",
        Sglang,
        Sse,
        r#"data: {"text":"abc\ufffd","output_ids":[1,2]}

data: {"text":"abc","output_ids":[1,2]}

data: {"text":"abcé","output_ids":[1,2,3]}

"#,
        "text0/4=2 | empty0=0 | empty0=1 |",
    ),
    (
        "SGLang, incremental: fewer ids than are counted",
        Sglang,
        Sse,
        r#"data: {"text":"A","output_ids":[8],"meta_info":{"completion_tokens":1}}

data: {"text":" red","output_ids":[40],"meta_info":{"completion_tokens":2}}

data: {"text":" ox","output_ids":[311],"meta_info":{"completion_tokens":3,"finish_reason":{"type":"stop","matched":2}}}

"#,
        "text0/1=1 running0(out 1) | text0/4=1 running0(out 2) | text0/3=1 finish0:stop choice0(out 3) |",
    ),
    (
        "SGLang: beyond eight answers nothing is remembered",
        Sglang,
        Sse,
        r#"data: {"index":8,"text":"ab"}

data: {"index":8,"text":"abc"}

"#,
        "text8/2 | text8/3 |",
    ),
    (
        "SGLang: an error under 200",
        Sglang,
        Sse,
        "data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n",
        "error | done |",
    ),
    (
        "LMDeploy: the same keys, each frame new; the reason is a word",
        Lmdeploy,
        Sse,
        r#"data: {"text":"A","output_ids":[8],"meta_info":{"finish_reason":null,"prompt_tokens":5,"completion_tokens":1}}

data: {"text":" red","output_ids":[40],"meta_info":{"finish_reason":null,"prompt_tokens":5,"completion_tokens":2}}

data: {"text":" ox","output_ids":[311],"meta_info":{"finish_reason":"stop","prompt_tokens":5,"completion_tokens":3}}

data: [DONE]

"#,
        "text0/1=1 running0(in 5 out 1) | text0/4=1 running0(in 5 out 2) | text0/3=1 finish0:stop choice0(in 5 out 3) | done |",
    ),
    (
        "TGI: a token a frame, the last repeats the answer",
        Tgi,
        Sse,
        r#"data: {"index":1,"token":{"id":8,"text":"A","logprob":-0.2,"special":false},"generated_text":null,"details":null}

data:{"index":2,"token":{"id":9,"text":"","special":false},"generated_text":null,"details":null}

:

data: {"index":3,"token":{"id":2,"text":"</s>","special":true},"generated_text":"A red ox","details":{"finish_reason":"eos_token","generated_tokens":3,"seed":null,"input_length":5}}

"#,
        "text0/1=1 running0(out 1) | empty0=1 running0(out 2) | ping text0/4=1 finish0:stop choice0(in 5 out 3) |",
    ),
    (
        "TGI: a text that looks like more",
        Tgi,
        Sse,
        r#"data: {"index":1,"token":{"text":"\"generated_text\":\"x\"","generated_text":"no","details":{"generated_tokens":9}},"generated_text":null,"other":{"index":9,"finish_reason":"length"}}

"#,
        "text0/20=1 running0(out 1) |",
    ),
    (
        "TGI without details",
        Tgi,
        Sse,
        r#"data: {"index":1,"token":{"text":"A"},"top_tokens":[{"text":"B"}],"generated_text":"A","details":null}

"#,
        "text0/1=1 finish0:stop running0(out 1) |",
    ),
    (
        "TGI: an error that is a string",
        Tgi,
        Sse,
        "data: {\"error\":\"Model is overloaded\",\"error_type\":\"overloaded\"}\n\n",
        "error |",
    ),
    (
        "Ollama: a tool's arguments look like the end",
        OllamaChat,
        Ndjson,
        r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"usage":{"prompt_tokens":7},"done":true,"eval_count":99}}}]},"done":false}
"#,
        "tool0/1 |",
    ),
    (
        "Ollama: thinking, text, the last line without its end",
        OllamaChat,
        Ndjson,
        "{\"model\":\"elm:1b\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\"},\"done\":false}\n\n{\"model\":\"elm:1b\",\"message\":{\"role\":\"assistant\",\"content\":\"\\u003cb\"},\"done\":false}\r\n{\"model\":\"elm:1b\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"length\",\"total_duration\":900000,\"load_duration\":100,\"prompt_eval_count\":5,\"prompt_eval_duration\":300,\"eval_count\":3,\"eval_duration\":500}",
        "reasoning0/2 | text0/2 | finish0:length choice0(in 5 out 3) server(queue 100 prefill 300 decode 500) |",
    ),
    (
        "Ollama: a line without anything, a zero that is not written",
        OllamaGenerate,
        Ndjson,
        r#"{"model":"elm:1b","response":"","done":false}
{"model":"elm:1b","response":" ox","logprobs":[{"token":" o"},{"token":"x"}],"done":false}
{"model":"elm:1b","response":"","done":true,"context":[1,2,3],"eval_count":3}
"#,
        "empty0 | text0/3=2 | finish0:stop choice0(out 3) |",
    ),
    (
        "Ollama: of two messages the last counts",
        OllamaChat,
        Ndjson,
        r#"{"message":{"content":"abc"},"message":{"thinking":"d"},"done":true,"message":{"content":"ef"},"done":false}
"#,
        "text0/2 |",
    ),
    (
        "Ollama: numbers that are no counts",
        OllamaGenerate,
        Ndjson,
        r#"{"response":"","done":true,"prompt_eval_count":-1,"eval_count":1e3}
"#,
        "finish0:stop choice0(out 1000 rejected 1) |",
    ),
    (
        "Ollama: loading is no answer",
        OllamaGenerate,
        Ndjson,
        r#"{"model":"elm:1b","created_at":"x","response":"","done":true,"done_reason":"load"}
"#,
        "meta finish0:other |",
    ),
    (
        "Ollama: an error in the middle",
        OllamaChat,
        Ndjson,
        r#"{"message":{"role":"assistant","content":"a"},"done":false}
{"error":"an error was encountered while running the model"}
"#,
        "text0/1 | error |",
    ),
    (
        "Triton",
        Triton,
        Sse,
        r#"data: {"model_name":"m","model_version":"1","text_output":" ox","sequence_length":7}

data: {"text_output":["a","bc"]}

data: {"text_output":""}

data: {"error":"boom"}

"#,
        "text0/3 | text0/3 | empty0 | error |",
    ),
    (
        "vLLM, tokens out",
        VllmGenerate,
        Sse,
        r#"data: {"request_id":"r","usage":null,"choices":[{"index":0,"finish_reason":null,"token_ids":[5,6],"logprobs":null}]}

data: {"usage":null,"choices":[{"index":0,"finish_reason":"length","token_ids":[7]}]}

data: {"usage":{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}},"choices":[]}

data: [DONE]

"#,
        "empty0=2 | empty0=1 finish0:length | whole(in 3 cached 0 out 3 total 6) | done |",
    ),
    (
        "Gemini: running counts, thinking beside the answer",
        Gemini,
        Sse,
        r#"data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":2,"totalTokenCount":7},"modelVersion":"m-001"}

data: {"candidates":[{"content":{"parts":[{"thought":true,"text":"h"},{"text":" ox"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":4}}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"dig","args":{"text":"no"}}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":2,"cachedContentTokenCount":1,"candidatesTokenCount":8,"thoughtsTokenCount":4}}

"#,
        "reasoning0/2 running0(in 5 out 2 thought 2 total 7) | reasoning0/1 text0/3 running0(in 5 out 7 thought 4) | tool0/3 finish0:stop whole(in 7 cached 1 out 12 thought 4) |",
    ),
    (
        "Gemini: reasons; a blocked prompt has no candidates",
        Gemini,
        Sse,
        r#"data: {"candidates":[{"finishReason":"MAX_TOKENS"},{"finishReason":"RECITATION","index":1}]}

data: {"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}

data: {"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5}}

"#,
        "finish0:length finish1:contentfilter | finish0:other | finish0:contentfilter whole(in 5) |",
    ),
    (
        "Gemini: an error over several lines, without a name before it",
        Gemini,
        Sse,
        r#"data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}

{
  "error": {
    "code": 503,
    "status": "UNAVAILABLE"
  }
}

"#,
        "text0/1 | error |",
    ),
    (
        "frames of an unknown shape are counted, and only their usage is read",
        Unknown,
        Sse,
        r#"data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9}}

data: no JSON at all

data: null

data

: c

data: {"error":{"message":"x"}}

data: [DONE]

"#,
        "text0 running0(in 9) | text0 | ping | ping | ping error | done |",
    ),
];
