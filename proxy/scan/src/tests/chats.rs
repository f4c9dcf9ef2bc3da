//! The dialects with a list of answers: vLLM's tokens, Gemini, and the additions of other servers to
//! the OpenAI chat.

use super::{scan_every_way, short, stream, whole};
use crate::Dialect::{Gemini, OpenaiChat as Chat, OpenaiCompletions, VllmGenerate};
use crate::Framing::{Json, Sse};

#[test]
fn additions_to_the_chat_yield_their_events() {
    let cases = [
        (r#"{"choices":[{"index":0,"delta":{"content":"a"},"output_ids":[7,8]}]}"#, "text0/1=2 |"),
        (
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"output_ids":[7],"token_ids":null}]}"#,
            "text0/1=1 |",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"token":"a","logprob":-1,"bytes":[1]}}]}"#,
            "text0/1 |",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"prompt_n":3,"cache_n":1,"predicted_n":2,"prompt_ms":0.5,"predicted_ms":1e1}}"#,
            "stop0 running0(in 4 cached 1 out 2) times(prefill 500000 decode 10000000) |",
        ),
        (
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2},"metrics":{"time_to_first_token_ms":12.994443,"generation_time_ms":79.8,"queue_time_ms":0.04}}"#,
            "whole(in 3 out 2) times(queue 40000 prefill 12994443 decode 79800000) |",
        ),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"usage":{"prompt_tokens":3,"completion_tokens":2,"avg_tok_per_sec":null,"total_prompt_time_sec":0.25,"total_completion_time_sec":1.5}}"#,
            "stop0 choice0(in 3 out 2) times(prefill 250000000 decode 1500000000) |",
        ),
        (
            r#"{"choices":[],"metrics":{"queue_time_ms":-1,"generation_time_ms":NaN,"time_to_first_token_ms":null}}"#,
            "meta |",
        ),
        (r#"{"choices":[],"usage":{"type":"duration","seconds":4}}"#, "meta |"),
        (r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{}}"#, "text0/1 |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Chat, &[frame]), expected, "{frame}");
    }
}

#[test]
fn empty_delta_without_a_model_is_an_error() {
    let chat = |rest: &str| format!(r#"{{"model":"","choices":[{{"index":0,{rest}}}]}}"#);
    for (rest, expected) in [
        (r#""delta":{"role":"assistant","content":""},"finish_reason":null"#, "error role0 |"),
        (r#""delta":{},"finish_reason":null"#, "error empty0 |"),
        (r#""delta":{"content":"a"},"finish_reason":null"#, "text0/1 |"),
        (r#""delta":{},"finish_reason":"stop""#, "stop0 |"),
        (r#""delta":{},"token_ids":[7]"#, "empty0=1 |"),
    ] {
        assert_eq!(stream(Chat, &[&chat(rest)]), expected, "{rest}");
    }
    assert_eq!(stream(OpenaiCompletions, &[r#"{"model":"","choices":[{"text":""}]}"#]), "error empty0 |");
    assert_eq!(stream(Chat, &[r#"{"model":"","choices":[]}"#]), "meta |");
}

#[test]
fn vllm_tokens_have_no_text() {
    let frames = [
        r#"{"request_id":"r","usage":null,"output_mode":"tokens","choices":[{"index":1,"finish_reason":null,"stop_reason":null,"token_ids":[458,1133],"logprobs":null}]}"#,
        r#"{"request_id":"r","usage":null,"choices":[{"index":0,"finish_reason":"length","token_ids":[450]}]}"#,
        r#"{"request_id":"r","usage":{"prompt_tokens":3,"total_tokens":27,"completion_tokens":24,"prompt_tokens_details":{"cached_tokens":0}},"choices":[]}"#,
        "[DONE]",
    ];
    assert_eq!(
        stream(VllmGenerate, &frames),
        "empty1=2 | empty0=1 length0 | whole(in 3 cached 0 out 24 total 27) | done |"
    );
}

#[test]
fn gemini_frames_yield_their_events() {
    let cases = [
        (
            r#"{"candidates":[{"content":{"parts":[{"text":" ox"}],"role":"model"},"index":1}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3,"totalTokenCount":8},"modelVersion":"m-001"}"#,
            "text1/3 running0(in 5 out 3 total 8) |",
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"}]}}]}"#,
            "reasoning0/2 text0/1 |",
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"dig","args":{"text":"x"}}}]}}]}"#,
            "tool0/3 |",
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":2,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":10}}"#,
            "text0/1 stop0 whole(in 7 cached 4 out 13 reasoning 10) |",
        ),
        (
            r#"{"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":10}}"#,
            "running0(in 5 out 10 reasoning 10) |",
        ),
        (r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#, "length0 |"),
        (r#"{"candidates":[{"finishReason":"IMAGE_SAFETY"}]}"#, "filter0 |"),
        (r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#, "ended0 |"),
        (
            r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":5}}"#,
            "filter0 whole(in 5) |",
        ),
        (r#"{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}"#, "error |"),
        ("{}", "other |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Gemini, &[frame]), expected, "{frame}");
    }
}

#[test]
fn a_gemini_array_is_a_stream_of_frames() {
    let body = "[{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"A\"}]}}],\n  \"usageMetadata\": {\"promptTokenCount\": 5, \"candidatesTokenCount\": 1},\n  \"modelVersion\": \"m\"\n}\n,\n{\"candidates\": [{\"content\": {\"parts\": [{\"text\": \" ox\"}]}, \"finishReason\": \"STOP\"}], \"usageMetadata\": {\"promptTokenCount\": 5, \"candidatesTokenCount\": 3}}]";
    let expected = "text0/1 running0(in 5 out 1) text0/3 stop0 whole(in 5 out 3)";
    let seen = scan_every_way(Gemini, Json, body);
    assert_eq!(short(&seen), format!("{expected} |"));
    assert_eq!(seen.model, "m");
    // A cut array keeps its complete elements.
    assert_eq!(whole(Gemini, &body[..body.len() - 1]), format!("{expected} other |"));
    assert_eq!(
        whole(Gemini, r#"[{"candidates":[{"content":{"parts":[{"text":"A"}]}}]},{"error":{"code":503}}]"#),
        "text0/1 error |"
    );
    assert_eq!(whole(Gemini, "[]"), "other |");
    let one =
        r#"{"candidates":[{"content":{"parts":[{"text":"A"}]}}],"usageMetadata":{"promptTokenCount":5}}"#;
    assert_eq!(whole(Gemini, one), "text0/1 whole(in 5) |");
}

#[test]
fn frames_with_computed_counts_have_no_shape() {
    let body: String = (1..9)
        .map(|n| format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"a\"}}]}},\"index\":{}}}],\"usageMetadata\":{{\"promptTokenCount\":5,\"candidatesTokenCount\":{n},\"thoughtsTokenCount\":2}}}}\n\n", n % 2))
        .collect();
    let expected: Vec<String> =
        (1..9).map(|n| format!("text{}/1 running0(in 5 out {} reasoning 2) |", n % 2, n + 2)).collect();
    assert_eq!(short(&scan_every_way(Gemini, Sse, &body)), expected.join(" "));
}

#[test]
fn chat_on_a_path_of_responses_is_counted() {
    let body = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
    assert!(whole(crate::Dialect::OpenaiResponses, body).contains("in 9 out 3"));
}

/// Each server's format of drafts, and Dynamo's times.
#[test]
fn drafts_and_times_are_reported() {
    let chat = |members: &str| stream(Chat, &[&format!(r#"{{"choices":[],{members}}}"#)]);
    let llama = r#""usage":{"completion_tokens":20,"prompt_tokens":7},"timings":{"prompt_n":7,"prompt_ms":0.5,"predicted_n":20,"predicted_ms":2,"draft_n":15,"draft_n_accepted":5}"#;
    assert!(
        chat(llama).contains("times(prefill 500000 decode 2000000 drafted 15 accepted 5)"),
        "{}",
        chat(llama)
    );
    let vllm = r#""usage":{"prompt_tokens":11742,"completion_tokens":35},"metrics":{"speculative_decoding":{"mean_acceptance_length":1.23,"draft_acceptance_rate":0.07,"acceptance_histogram":[39,1,0,3],"num_spec_steps":43,"num_accepted_draft_tokens":10,"num_draft_tokens":129,"num_spec_tokens":3}}"#;
    assert!(chat(vllm).contains("times(drafted 129 accepted 10)"), "{}", chat(vllm));
    for nothing in ["null", "[]", "7", r#"{"num_draft_tokens":-1,"num_accepted_draft_tokens":"x"}"#] {
        let expected = chat(&format!(r#""metrics":{{"speculative_decoding":{nothing}}}"#));
        assert!(!expected.contains("times"), "{expected}");
    }
    let dynamo = r#""nvext":{"timing":{"request_received_ms":1777312800000,"prefill_wait_time_ms":12.1,"prefill_time_ms":70.3,"ttft_ms":82.4,"total_time_ms":1000.1}}"#;
    assert!(chat(dynamo).contains("times(queue 12100000 prefill 70300000)"), "{}", chat(dynamo));
}
