//! Bodies that come whole.

use scan::Dialect::{
    Anthropic, Cohere, Embeddings, Gemini, OllamaChat, OpenaiResponses as Responses, Rerank, Sglang, Tgi,
    Transcription, VllmGenerate,
};
use scan::Framing::Json;

use super::Vector;

/// Bodies that come whole.
pub(super) const UNSTREAMED: &[Vector] = &[
    (
        "Responses",
        Responses,
        Json,
        r#"{"object":"response","model":"m","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","summary":[{"text":"s"}],"content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"Ok"},{"type":"refusal","refusal":"no!"}]},{"type":"function_call","name":"dig","arguments":"{}"},{"type":"custom_tool_call","input":"x"}],"usage":{"input_tokens":9,"output_tokens":3}}"#,
        "reasoning0/3 text0/2 refusal0/3 tool0/3 finish0:stop whole(in 9 out 3) |",
    ),
    (
        "Responses, cut by its length",
        Responses,
        Json,
        r#"{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"content":[{"text":"a"}]}],"usage":{"input_tokens":9,"output_tokens":3}}"#,
        "text0/1 finish0:length whole(in 9 out 3) |",
    ),
    (
        "Responses, in the background",
        Responses,
        Json,
        r#"{"object":"response","status":"queued","output":[],"usage":null}"#,
        "progress |",
    ),
    (
        "Responses, failed",
        Responses,
        Json,
        r#"{"object":"response","status":"failed","error":{"code":"x"},"output":[],"usage":null}"#,
        "error |",
    ),
    (
        "a stream asked for, an error answered",
        Responses,
        Json,
        r#"{"error":{"message":"x","code":400}}"#,
        "error |",
    ),
    ("a framework's word", Responses, Json, r#"{"detail":"Not Found"}"#, "other |"),
    (
        "Anthropic: a tool's input looks like usage",
        Anthropic,
        Json,
        r#"{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"A"},{"type":"text","text":"Ok"},{"type":"tool_use","name":"dig","input":{"usage":{"output_tokens":9},"text":"no"}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"cache_read_input_tokens":18,"output_tokens":24}}"#,
        "reasoning0/2 text0/2 tool0/3 finish0:toolcalls whole(in 19 cached 18 out 24) |",
    ),
    (
        "Anthropic: an error",
        Anthropic,
        Json,
        r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
        "error |",
    ),
    (
        "TGI: an array of one; no prefill was asked for",
        Tgi,
        Json,
        r#"[{"generated_text":"A red ox","details":{"finish_reason":"length","generated_tokens":3,"prefill":[],"tokens":[{"text":"A"},{"text":" red"},{"text":" ox"}]}}]"#,
        "text0/8=3 finish0:length choice0(out 3) |",
    ),
    (
        "TGI: the best of three, and the prompt",
        Tgi,
        Json,
        r#"{"generated_text":"A","details":{"finish_reason":"eos_token","generated_tokens":2,"prefill":[{"id":1},{"id":2}],"best_of_sequences":[{"generated_text":"B","generated_tokens":3,"finish_reason":"length"},{"generated_tokens":4}]}}"#,
        "text0/1 finish0:stop choice0(in 2 out 9) |",
    ),
    (
        "TGI: two prompts, no details",
        Tgi,
        Json,
        r#"[{"generated_text":"A"},{"generated_text":"bc"}]"#,
        "text0/1 finish0:stop text1/2 finish1:stop |",
    ),
    (
        "SGLang: two answers",
        Sglang,
        Json,
        r#"[{"text":"ab","output_ids":[1,2],"meta_info":{"finish_reason":{"type":"stop"},"prompt_tokens":5,"completion_tokens":2}},{"text":"abc","output_ids":[1,2,3],"meta_info":{"finish_reason":{"type":"length"},"prompt_tokens":5,"completion_tokens":3}}]"#,
        "text0/2=2 finish0:stop choice0(in 5 out 2) text1/3=3 finish1:length choice1(in 5 out 3) |",
    ),
    (
        "Ollama",
        OllamaChat,
        Json,
        r#"{"model":"elm:1b","message":{"role":"assistant","content":"Ok"},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":3}"#,
        "text0/2 finish0:stop choice0(in 5 out 3) |",
    ),
    (
        "vLLM, tokens out",
        VllmGenerate,
        Json,
        r#"{"request_id":"r","choices":[{"index":0,"token_ids":[1,2,3],"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":3}}"#,
        "empty0=3 finish0:stop choice0(in 3 out 3) |",
    ),
    (
        "Gemini, an array that was streamed",
        Gemini,
        Json,
        r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"content":{"parts":[{"text":"bc"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}]"#,
        "text0/1 text0/2 finish0:stop whole(in 5 out 2) |",
    ),
    (
        "Cohere",
        Cohere,
        Json,
        r#"{"id":"x","message":{"role":"assistant","content":[{"type":"text","text":"Ok"}]},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":12.0,"output_tokens":3.0}}}"#,
        "text0/2 finish0:stop whole(in 12 out 3) |",
    ),
    (
        "embeddings, the count behind them",
        Embeddings,
        Json,
        r#"{"object":"list","model":"m","data":[{"index":0,"embedding":[0.5,-0.25],"usage":{"prompt_tokens":99}}],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":0}}"#,
        "whole(in 5) |",
    ),
    (
        "embeddings, a total alone",
        Embeddings,
        Json,
        r#"{"usage":{"prompt_tokens":null,"total_tokens":6}}"#,
        "whole(in 6) |",
    ),
    (
        "embeddings of Ollama",
        Embeddings,
        Json,
        r#"{"model":"elm","embeddings":[[0.5]],"prompt_eval_count":5}"#,
        "whole(in 5) |",
    ),
    (
        "embeddings of llama.cpp's own",
        Embeddings,
        Json,
        r#"[{"index":0,"embedding":[[0.5,-0.25]]}]"#,
        "other |",
    ),
    ("embeddings, refused", Embeddings, Json, r#"{"error":"Unauthorized"}"#, "error |"),
    (
        "a ranking of Cohere's kind",
        Rerank,
        Json,
        r#"{"results":[{"index":0,"relevance_score":0.5}],"meta":{"billed_units":{"search_units":1},"tokens":{"input_tokens":12.0}}}"#,
        "whole(in 12) |",
    ),
    (
        "a transcription",
        Transcription,
        Json,
        r#"{"text":" so","usage":{"type":"duration","seconds":4}}"#,
        "text0/3 |",
    ),
    (
        "a transcription with segments and tokens",
        Transcription,
        Json,
        r#"{"text":" so","segments":[{"text":" so"}],"usage":{"type":"tokens","input_tokens":14,"output_tokens":2}}"#,
        "text0/3 whole(in 14 out 2) |",
    ),
];
