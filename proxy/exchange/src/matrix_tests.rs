//! Every path × the shape of every dialect's answer: a usage counts whatever the path says.

use scan::Dialect;

use crate::route::known_paths;
use crate::tests::{CLEAN, exchanged};

/// The counts of each answer; a dialect without output has the first only.
const INPUT: u64 = 26;
const OUTPUT: u64 = 31;

/// An answer with these counts, in the shape of a dialect.
struct Shape {
    /// The frames of a stream, and their content type; none if it has no streams.
    stream: &'static [&'static str],
    /// The unstreamed answer.
    whole: &'static str,
}

/// Returns the shape of a dialect; `None` if its answers state no counts, or are messages of a WebSocket.
fn shape(dialect: Dialect) -> Option<Shape> {
    Some(match dialect {
        Dialect::OpenaiChat => Shape {
            stream: &[
                r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
                r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":26,"completion_tokens":31,"total_tokens":57}}"#,
                "[DONE]",
            ],
            whole: r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":26,"completion_tokens":31,"total_tokens":57}}"#,
        },
        Dialect::OpenaiCompletions => Shape {
            stream: &[
                r#"{"id":"c","object":"text_completion","model":"m","choices":[{"index":0,"text":"a","finish_reason":null}]}"#,
                r#"{"id":"c","object":"text_completion","model":"m","choices":[{"index":0,"text":"b","finish_reason":"stop"}]}"#,
                r#"{"id":"c","object":"text_completion","model":"m","choices":[],"usage":{"prompt_tokens":26,"completion_tokens":31,"total_tokens":57}}"#,
                "[DONE]",
            ],
            whole: r#"{"id":"c","object":"text_completion","model":"m","choices":[{"index":0,"text":"ab","finish_reason":"stop"}],"usage":{"prompt_tokens":26,"completion_tokens":31,"total_tokens":57}}"#,
        },
        Dialect::OpenaiResponses => Shape {
            stream: &[
                r#"{"type":"response.created","response":{"id":"r","object":"response","model":"m","status":"in_progress","usage":null}}"#,
                r#"{"type":"response.output_text.delta","delta":"a"}"#,
                r#"{"type":"response.completed","response":{"id":"r","object":"response","model":"m","status":"completed","usage":{"input_tokens":26,"input_tokens_details":{"cached_tokens":5},"output_tokens":31,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":57}}}"#,
            ],
            whole: r#"{"id":"r","object":"response","model":"m","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":26,"input_tokens_details":{"cached_tokens":5},"output_tokens":31,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":57}}"#,
        },
        Dialect::Anthropic => Shape {
            stream: &[
                r#"{"type":"message_start","message":{"id":"a","type":"message","model":"m","content":[],"usage":{"input_tokens":20,"cache_read_input_tokens":6,"output_tokens":1}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":31}}"#,
                r#"{"type":"message_stop"}"#,
            ],
            whole: r#"{"id":"a","type":"message","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":20,"cache_read_input_tokens":6,"output_tokens":31}}"#,
        },
        Dialect::LlamacppCompletion => Shape {
            stream: &[
                r#"{"index":0,"content":"a","tokens":[1],"stop":false,"id_slot":0,"tokens_predicted":1,"tokens_evaluated":26}"#,
                r#"{"index":0,"content":"","tokens":[],"stop":true,"model":"m","tokens_predicted":31,"tokens_evaluated":26,"stop_type":"eos"}"#,
            ],
            whole: r#"{"index":0,"content":"a","tokens":[],"stop":true,"model":"m","tokens_predicted":31,"tokens_evaluated":26,"stop_type":"eos"}"#,
        },
        Dialect::Tgi => Shape {
            stream: &[
                r#"{"index":1,"token":{"id":1,"text":"a","logprob":0.0,"special":false},"generated_text":null,"details":null}"#,
                r#"{"index":31,"token":{"id":2,"text":"b","logprob":0.0,"special":true},"generated_text":"ab","details":{"finish_reason":"eos_token","generated_tokens":31,"input_length":26}}"#,
            ],
            whole: r#"{"generated_text":"ab","details":{"finish_reason":"eos_token","generated_tokens":31,"input_length":26,"prefill":[],"tokens":[]}}"#,
        },
        Dialect::Sglang | Dialect::Lmdeploy => Shape {
            stream: &[
                r#"{"text":"a","output_ids":[1],"meta_info":{"id":"s","finish_reason":null,"prompt_tokens":26,"completion_tokens":1}}"#,
                r#"{"text":"ab","output_ids":[1,2],"meta_info":{"id":"s","finish_reason":{"type":"stop"},"prompt_tokens":26,"completion_tokens":31}}"#,
                "[DONE]",
            ],
            whole: r#"{"text":"ab","meta_info":{"id":"s","finish_reason":{"type":"stop"},"prompt_tokens":26,"completion_tokens":31}}"#,
        },
        Dialect::OllamaChat => Shape {
            stream: &[
                r#"{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"a"},"done":false}"#,
                r#"{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":31}"#,
            ],
            whole: r#"{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"a"},"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":31}"#,
        },
        Dialect::OllamaGenerate => Shape {
            stream: &[
                r#"{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"a","done":false}"#,
                r#"{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"","done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":31}"#,
            ],
            whole: r#"{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"a","done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":31}"#,
        },
        Dialect::VllmGenerate => Shape {
            stream: &[
                r#"{"request_id":"v","choices":[{"index":0,"logprobs":null,"finish_reason":null,"token_ids":[1]}]}"#,
                r#"{"request_id":"v","choices":[{"index":0,"logprobs":null,"finish_reason":"stop","token_ids":[2]}]}"#,
                r#"{"request_id":"v","choices":[],"usage":{"prompt_tokens":26,"completion_tokens":31,"total_tokens":57}}"#,
                "[DONE]",
            ],
            whole: r#"{"request_id":"v","choices":[{"index":0,"logprobs":null,"finish_reason":"stop","token_ids":[1,2]}],"usage":{"prompt_tokens":26,"completion_tokens":31,"total_tokens":57}}"#,
        },
        Dialect::Gemini => Shape {
            stream: &[
                r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":26,"totalTokenCount":26},"modelVersion":"m","responseId":"g"}"#,
                r#"{"candidates":[{"content":{"parts":[{"text":"b"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":26,"candidatesTokenCount":28,"thoughtsTokenCount":3,"totalTokenCount":57},"modelVersion":"m","responseId":"g"}"#,
            ],
            whole: r#"{"candidates":[{"content":{"parts":[{"text":"ab"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":26,"candidatesTokenCount":28,"thoughtsTokenCount":3,"totalTokenCount":57},"modelVersion":"m","responseId":"g"}"#,
        },
        Dialect::GeminiInteractions => Shape {
            stream: &[
                r#"{"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress","model":"m"}}"#,
                r#"{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"a"}}"#,
                r#"{"event_type":"interaction.completed","interaction":{"id":"i","status":"completed","model":"m","usage":{"total_input_tokens":26,"total_output_tokens":28,"total_thought_tokens":3,"total_tokens":57}}}"#,
                "[DONE]",
            ],
            whole: r#"{"id":"i","status":"completed","model":"m","steps":[{"type":"model_output","content":[{"type":"text","text":"a"}]}],"usage":{"total_input_tokens":26,"total_output_tokens":28,"total_thought_tokens":3,"total_tokens":57}}"#,
        },
        Dialect::Cohere => Shape {
            stream: &[
                r#"{"type":"message-start","id":"o","delta":{"message":{"role":"assistant"}}}"#,
                r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}"#,
                r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":26.0,"output_tokens":31.0}}}}"#,
            ],
            whole: r#"{"id":"o","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"a"}]},"usage":{"tokens":{"input_tokens":26.0,"output_tokens":31.0}}}"#,
        },
        Dialect::BedrockConverse => Shape {
            stream: &[
                r#"{"role":"assistant","p":"abc"}"#,
                r#"{"contentBlockIndex":0,"delta":{"text":"a"},"p":"ab"}"#,
                r#"{"contentBlockIndex":0,"p":"a"}"#,
                r#"{"stopReason":"end_turn","p":"abcd"}"#,
                r#"{"metrics":{"latencyMs":9},"usage":{"inputTokens":20,"outputTokens":31,"totalTokens":57,"cacheReadInputTokens":6,"cacheWriteInputTokens":0},"p":"a"}"#,
            ],
            whole: r#"{"output":{"message":{"role":"assistant","content":[{"text":"a"}]}},"stopReason":"end_turn","usage":{"inputTokens":20,"outputTokens":31,"totalTokens":57,"cacheReadInputTokens":6,"cacheWriteInputTokens":0},"metrics":{"latencyMs":9}}"#,
        },
        Dialect::Embeddings => Shape {
            stream: &[],
            whole: r#"{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":26,"total_tokens":26}}"#,
        },
        Dialect::Rerank => Shape {
            stream: &[],
            whole: r#"{"id":"k","model":"m","results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":26}}"#,
        },
        Dialect::Transcription => Shape {
            stream: &[
                r#"{"type":"transcript.text.delta","delta":"a"}"#,
                r#"{"type":"transcript.text.done","text":"a","usage":{"type":"tokens","input_tokens":26,"input_token_details":{"audio_tokens":20},"output_tokens":31,"total_tokens":57}}"#,
            ],
            whole: r#"{"text":"a","usage":{"type":"tokens","input_tokens":26,"input_token_details":{"audio_tokens":20},"output_tokens":31,"total_tokens":57}}"#,
        },
        Dialect::Unknown => Shape {
            stream: &[r#"{"delta":"a"}"#, r#"{"usage":{"input_tokens":26,"output_tokens":31}}"#],
            whole: r#"{"anything":"a","usage":{"input_tokens":26,"output_tokens":31}}"#,
        },
        Dialect::Triton | Dialect::Realtime => return None,
    })
}

/// The paths without their version, and one that no dialect has.
fn paths() -> Vec<String> {
    let known = known_paths();
    let unversioned = known.iter().filter_map(|path| {
        let version =
            ["/inference/v1", "/v1beta", "/v1", "/v2"].into_iter().find_map(|v| path.strip_prefix(v));
        version.map(str::to_owned)
    });
    let mut paths: Vec<_> = unversioned.chain(known.clone()).chain(["/own/path".to_owned()]).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

#[test]
fn usage_counts_on_every_path() {
    let (mut cells, mut wrong) = (0, Vec::new());
    let mut check = |path: &str, dialect: Dialect, streamed: bool, content_type, body: &[u8]| {
        let output = if dialect.generates() { OUTPUT } else { 0 };
        for size in [body.len(), 5] {
            cells += 1;
            let record = exchanged(
                (path, r#"{"model":"m"}"#),
                &[("content-type", content_type)],
                body.chunks(size),
                CLEAN,
            );
            let counted = record.map(|record| {
                // Nothing marks the end of an unknown stream.
                let is_success = record.ending.is_success() || dialect == Dialect::Unknown;
                let is_success = is_success && record.streamed == streamed;
                (record.tokens.input(), record.tokens.output(), is_success)
            });
            if counted != Some((INPUT, output, true)) {
                wrong.push(format!("{path} {} {content_type}: {counted:?}", dialect.name()));
            }
        }
    };
    for path in paths() {
        for dialect in Dialect::ALL {
            let Some(Shape { stream, whole }) = shape(dialect) else { continue };
            check(&path, dialect, false, "application/json", whole.as_bytes());
            if stream.is_empty() {
                continue;
            }
            let is_lines = matches!(dialect, Dialect::OllamaChat | Dialect::OllamaGenerate);
            let (content_type, before, after) = match is_lines {
                true => ("application/x-ndjson", "", "\n"),
                false => ("text/event-stream", "data: ", "\n\n"),
            };
            let body: String = stream.iter().map(|frame| format!("{before}{frame}{after}")).collect();
            check(&path, dialect, true, content_type, body.as_bytes());
        }
    }
    assert!(cells > 1000, "{cells}");
    assert!(wrong.is_empty(), "{} of {cells}:\n{}", wrong.len(), wrong.join("\n"));
}
