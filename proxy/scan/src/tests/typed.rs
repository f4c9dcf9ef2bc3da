//! The dialects with typed frames: Responses, Anthropic, Cohere, and part of transcription.

use super::{scan_every_way, short, stream, whole};
use crate::Dialect::{
    Anthropic, Cohere, Gemini, GeminiInteractions, OpenaiChat, OpenaiResponses as Responses, Transcription,
    Unknown,
};
use crate::Framing::{Json, Sse};

#[test]
fn the_type_decides_the_kind_of_a_delta() {
    let delta = |of: &str| {
        format!(r#"{{"type":"response.{of}.delta","sequence_number":5,"delta":"Ok","logprobs":[]}}"#)
    };
    for (of, expected) in [
        ("output_text", "text0/2 |"),
        ("refusal", "refusal0/2 |"),
        ("reasoning_text", "reasoning0/2 |"),
        ("reasoning_summary_text", "reasoning0/2 |"),
        ("function_call_arguments", "tool0/2 |"),
        ("custom_tool_call_input", "tool0/2 |"),
        ("mcp_call_arguments", "tool0/2 |"),
        ("code_interpreter_call_code", "tool0/2 |"),
        ("audio", "audio0/2 |"),
        ("audio.transcript", "audio0/2 |"),
        ("shell_call_command", "meta |"),
    ] {
        assert_eq!(stream(Responses, &[&delta(of)]), expected, "{of}");
    }
}

#[test]
fn responses_frames_yield_their_events() {
    let cases = [
        (r#"{"delta":"Ok","sequence_number":1,"type":"response.output_text.delta"}"#, "text0/2 |"),
        (r#"{"type":"response.output_text.delta","delta":""}"#, "empty0 |"),
        (r#"{"type":"response.output_text.delta"}"#, "empty0 |"),
        (r#"{"type":"response.output_text.delta","delta":"Ok","logprobs":[{},{}]}"#, "text0/2=2 |"),
        (r#"{"type":"response.output_text.delta","delta":"no","delta":"yes"}"#, "text0/3 |"),
        (r#"{"type":"response.output_text.done","text":"all of it"}"#, "meta |"),
        (r#"{"type":"response.output_item.added","item":{"type":"message","content":[]}}"#, "meta |"),
        (r#"{"type":"response.image_generation_call.partial_image","partial_image_b64":"AAAA"}"#, "meta |"),
        (r#"{"type":"response.queued","response":{"status":"queued"}}"#, "progress |"),
        (r#"{"type":"error","code":"x","message":"boom","param":null,"sequence_number":3}"#, "error |"),
        (r#"{"error":{"message":"boom"}}"#, "error |"),
        (r#"{"detail":"Not Found"}"#, "other |"),
        (r#"[DONE]"#, "done |"),
        (
            r#"{"type":"response.completed","response":{"status":"completed","error":null,"incomplete_details":null,"output":[{"content":[{"text":"all of it"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":8,"cache_write_tokens":1},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":14}}}"#,
            "stop0 choice(in 9 cached 8 cache_write 1 out 5 reasoning 2 total 14) done |",
        ),
        (
            r#"{"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":9,"output_tokens":5}},"type":"response.completed"}"#,
            "length0 choice(in 9 out 5) done |",
        ),
        (
            r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#,
            "filter0 done |",
        ),
        (r#"{"type":"response.incomplete","response":{"status":"incomplete"}}"#, "ended0 done |"),
        (r#"{"type":"response.completed","response":{"status":"in_progress"}}"#, "stop0 done |"),
        (r#"{"type":"response.cancelled","response":{"status":"cancelled"}}"#, "abort0 done |"),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"x"},"usage":{"input_tokens":9,"output_tokens":5}}}"#,
            "error choice(in 9 out 5) done |",
        ),
        (r#"{"type":"response.failed","response":{"status":"completed"}}"#, "error done |"),
        (r#"{"type":"response.completed","response":{"status":"cancelled"}}"#, "abort0 done |"),
        (
            r#"{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1}},"timings":{"prompt_ms":0.373,"predicted_ms":2.5}}"#,
            "stop0 choice(in 1 out 1) times(prefill 373000 decode 2500000) done |",
        ),
        (
            r#"{"type":"response.completed","response":{"metrics":{"time_to_first_token_ms":5.5,"generation_time_ms":2,"queue_time_ms":0.5}}}"#,
            "stop0 times(queue 500000 prefill 5500000 decode 2000000) done |",
        ),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Responses, &[frame]), expected, "{frame}");
    }
}

#[test]
fn members_outside_the_response_do_not_end_it() {
    let frame = r#"{"type":"response.completed","usage":{"input_tokens":1,"output_tokens":1},"status":"failed","response":{"status":"completed"}}"#;
    assert_eq!(stream(Responses, &[frame]), "stop0 done |");
}

#[test]
fn an_unstreamed_response_yields_its_items() {
    let cases = [
        (
            r#"{"object":"response","model":"m","output":[{"content":[{"type":"reasoning_text","text":"hmm"}],"summary":[{"text":"so"}],"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"Hi"},{"type":"output_text","text":"!"},{"type":"refusal","refusal":"no"}]},{"type":"function_call","name":"dig","arguments":"{}"},{"type":"custom_tool_call","input":"abc"}],"status":"completed","error":null,"usage":{"input_tokens":9,"output_tokens":5}}"#,
            "reasoning0/5 text0/3 refusal0/2 tool0/5 stop0 whole(in 9 out 5) |",
        ),
        (r#"{"object":"response","status":"in_progress","output":[],"usage":null}"#, "progress |"),
        (r#"{"object":"response","status":"failed","output":[],"error":{"code":"x"}}"#, "error |"),
        (
            r#"{"object":"response","status":"failed","output":[{"content":[{"text":"Hi"}]}],"usage":{"output_tokens":5}}"#,
            "error text0/2 whole(out 5) |",
        ),
        (
            r#"{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"content":[{"text":"Hi"}]}]}"#,
            "text0/2 length0 |",
        ),
        (r#"{"detail":"Not Found"}"#, "other |"),
        (r#"{"error":"Unauthorized"}"#, "error |"),
    ];
    for (body, expected) in cases {
        assert_eq!(whole(Responses, body), expected, "{body}");
    }
    assert_eq!(stream(Responses, &[r#"{"object":"response","status":"completed","output":[]}"#]), "stop0 |");
}

/// llama.cpp sends several answers (`n` or `n_cmpl`) as one array.
#[test]
fn responses_in_an_array_are_counted_separately() {
    let answer = |text: &str, output: u32| {
        format!(
            r#"{{"completed_at":1,"id":"resp_{text}","model":"tiny","object":"response","output":[{{"id":"rs_1","summary":[],"type":"reasoning","content":[{{"text":"{text}","type":"reasoning_text"}}],"status":"completed"}}],"status":"completed","usage":{{"input_tokens":16,"output_tokens":{output},"total_tokens":36,"input_tokens_details":{{"cached_tokens":3}}}}}}"#
        )
    };
    let both = format!("[{},{}]", answer("ab", 20), answer("c", 4));
    assert_eq!(
        whole(Responses, &both),
        "reasoning0/2 stop0 choice(in 16 cached 3 out 20 total 36) reasoning1/1 stop1 choice(in 16 cached 3 out 4 total 36) |"
    );
    assert_eq!(scan_every_way(Responses, Json, &both).model, "tiny");
    let one = format!("[{}]", answer("ab", 20));
    assert_eq!(whole(Responses, &one), "reasoning0/2 stop0 choice(in 16 cached 3 out 20 total 36) |");
    assert_eq!(whole(Responses, "[]"), "other |");
    assert_eq!(whole(Responses, "[5,null]"), "other |");
    let cut = &both[..both.len() - 30];
    assert_eq!(whole(Responses, cut), "reasoning0/2 stop0 choice(in 16 cached 3 out 20 total 36) other |");
}

/// Streamed, its answers are parallel; the stream ends when every answer that began has ended.
#[test]
fn parallel_responses_end_with_the_last() {
    let begin =
        r#"{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress"}}"#;
    let text = r#"{"type":"response.output_text.delta","delta":"Ok","item_id":"m"}"#;
    let end = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":16,"output_tokens":20}}}"#;
    assert_eq!(
        stream(Responses, &[begin, text, begin, text, end, text, end]),
        "progress | text0/2 | progress role1 | text0/2 | stop0 choice(in 16 out 20) | text0/2 | \
         stop1 choice(in 16 out 20) done |"
    );
    // The first ends before the second begins.
    assert_eq!(
        stream(Responses, &[begin, end, begin, end]),
        "progress | stop0 choice(in 16 out 20) done | progress role1 | stop1 choice(in 16 out 20) done |"
    );
}

/// A running count does not identify its answer among several. After the answer's end it would count twice.
#[test]
fn only_a_single_open_response_has_running_counts() {
    let begin = r#"{"type":"response.created","response":{"status":"in_progress"}}"#;
    let timings = r#""timings":{"cache_n":15,"prompt_n":1,"predicted_n":5}"#;
    let delta = format!(r#"{{"type":"response.output_text.delta","delta":"Ok","item_id":"m",{timings}}}"#);
    let done = format!(r#"{{"type":"response.output_text.done","item_id":"m",{timings}}}"#);
    let end =
        r#"{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":5}}}"#;
    let running = "running0(in 16 cached 15 out 5)";
    for (frames, expected) in [
        (vec![&*delta], format!("text0/2 {running} |")),
        (vec![begin, &*delta, &*done], format!("progress | text0/2 {running} | meta {running} |")),
        (
            vec![begin, &*delta, begin, &*delta, &*done],
            format!("progress | text0/2 {running} | progress role1 | text0/2 | meta |"),
        ),
        (
            vec![begin, begin, end, &*delta],
            "progress | progress role1 | stop0 choice(out 5) | text0/2 |".into(),
        ),
        (vec![begin, end, &*done], "progress | stop0 choice(out 5) done | meta |".into()),
        (vec![end, &*delta], "stop0 choice(out 5) done | text0/2 |".into()),
    ] {
        assert_eq!(stream(Responses, &frames), expected, "{frames:?}");
    }
}

#[test]
fn anthropic_frames_yield_their_events() {
    let start = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":1,"cache_read_input_tokens":90,"output_tokens":1}}}"#;
    let seen = scan_every_way(
        Anthropic,
        Sse,
        &format!(
            "event: message_start\ndata: {start}\n\n\
             event: message_delta\ndata: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"output_tokens\":12,\"output_tokens_details\":{{\"thinking_tokens\":3}}}}}}\n\n\
             event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
        ),
    );
    assert_eq!(
        short(&seen),
        "role0 running0(in 96 cached 90 cache_write 1) | \
         stop0 whole(in 96 cached 90 cache_write 1 out 12 reasoning 3) | done |"
    );
    assert_eq!(seen.model, "m");
    let cases = [
        (r#"{"type":"message_start","message":{"usage":{"output_tokens":1}}}"#, "role0 |"),
        (
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"dig","input":{}}}"#,
            "meta |",
        ),
        (
            r#"{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"Hi"}}"#,
            "text0/2 |",
        ),
        (
            r#"{"delta":{"thinking":"hmm","type":"thinking_delta"},"type":"content_block_delta"}"#,
            "reasoning0/3 |",
        ),
        (
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
            "tool0/3 |",
        ),
        (
            r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}"#,
            "empty0 |",
        ),
        (
            r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"abc"}}"#,
            "empty0 |",
        ),
        (r#"{"type":"content_block_stop","index":0}"#, "meta |"),
        (
            r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3}}"#,
            "whole(out 3) |",
        ),
        (r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#, "tools0 |"),
        (r#"{"type":"message_delta","delta":{"stop_reason":"refusal"}}"#, "filter0 |"),
        (r#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}"#, "length0 |"),
        (r#"{"type":"ping"}"#, "ping |"),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, "error |"),
        (r#"{"type":"nobody_knows"}"#, "meta |"),
        (r#"{"type":"content_block_delta","delta":{"text":"x"},"error":{"type":"x"}}"#, "error text0/1 |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Anthropic, &[frame]), expected, "{frame}");
    }
}

/// The first event states the lifetimes, and the last the total alone. `scan_every_way` cuts at every byte.
#[test]
fn anthropic_cache_writes_have_a_lifetime() {
    let start = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":12,"cache_read_input_tokens":90,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":8},"output_tokens":1,"service_tier":"standard"}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":5,"cache_creation_input_tokens":12,"cache_read_input_tokens":90,"output_tokens":12}}"#;
    let seen =
        scan_every_way(Anthropic, Sse, &format!("event: message_start\ndata: {start}\n\ndata: {end}\n\n"));
    assert_eq!(
        short(&seen),
        "role0 running0(in 107 cached 90 cache_write 12 cache_write_1h 8) | \
         stop0 whole(in 107 cached 90 cache_write 12 cache_write_1h 8 out 12) |"
    );
    let whole = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"cache_creation_input_tokens":12,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":12},"output_tokens":2}}"#;
    let seen = scan_every_way(Anthropic, Json, whole);
    let counts = "whole(in 17 cached 0 cache_write 12 cache_write_1h 12 out 2)";
    assert!(short(&seen).contains(counts), "{}", short(&seen));
    // An unknown path, as Bedrock's or a gateway's.
    let seen = scan_every_way(Unknown, Json, whole);
    let counts = "whole(in 17 cached 0 cache_write 12 cache_write_1h 12 out 2)";
    assert!(short(&seen).contains(counts), "{}", short(&seen));
    // Without the total, it is the sum of the stated lifetimes, in any order of the members.
    for (total, lifetimes, expected) in [
        ("", r#""ephemeral_1h_input_tokens":12"#, ["in 17 cached 0", "cache_write_1h 12 out 2"]),
        ("", r#""ephemeral_5m_input_tokens":4"#, ["in 9 cached 0", "cache_write 4 out 2"]),
        (
            "",
            r#""ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":8"#,
            ["in 17 cached 0", "cache_write 12 cache_write_1h 8 out 2"],
        ),
        (
            "",
            r#""ephemeral_1h_input_tokens":8,"ephemeral_5m_input_tokens":4"#,
            ["in 17 cached 0", "cache_write 12 cache_write_1h 8 out 2"],
        ),
        (
            r#""cache_creation_input_tokens":10,"#,
            r#""ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":20000000"#,
            ["in 15 cached 0", "cache_write 10 cache_write_1h 20000000 out 2"],
        ),
    ] {
        let body = whole
            .replace(r#""cache_creation_input_tokens":12,"#, total)
            .replace(r#""ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":12"#, lifetimes);
        for dialect in [Anthropic, Unknown] {
            let seen = short(&scan_every_way(dialect, Json, &body));
            assert!(expected.iter().all(|part| seen.contains(part)), "{lifetimes}: {seen}");
        }
    }
    let start = start.replace(r#""cache_creation_input_tokens":12,"#, "");
    let end = end.replace(r#""cache_creation_input_tokens":12,"#, "");
    let seen = scan_every_way(Anthropic, Sse, &format!("data: {start}\n\ndata: {end}\n\n"));
    let counts = "whole(in 107 cached 90 cache_write 12 cache_write_1h 8 out 12)";
    assert!(short(&seen).contains(counts), "{}", short(&seen));
}

/// LiteLLM's chat counts the writes within the prompt, by two names.
#[test]
fn litellm_cache_writes_have_a_lifetime() {
    let usage = r#"{"prompt_tokens":107,"completion_tokens":2,"total_tokens":109,"prompt_tokens_details":{"cached_tokens":90,"text_tokens":5,"cache_write_tokens":12,"cache_creation_tokens":12,"cache_creation_token_details":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":8}},"cache_creation_input_tokens":12,"cache_read_input_tokens":90}"#;
    let whole = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"Hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
    );
    let counts = "(in 107 cached 90 cache_write 12 cache_write_1h 8 out 2 total 109)";
    let seen = scan_every_way(OpenaiChat, Json, &whole);
    assert!(short(&seen).contains(counts), "{}", short(&seen));
    let older = whole.replace(r#""cache_write_tokens":12,"#, "");
    let seen = scan_every_way(OpenaiChat, Json, &older);
    assert!(short(&seen).contains(counts), "{}", short(&seen));
}

#[test]
fn anthropic_counts_are_overwritten_by_name() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":1,"output_tokens":24,"cache_read_input_tokens":18,"cache_creation_input_tokens":null}}"#;
    assert_eq!(
        stream(Anthropic, &[start, end]),
        "role0 running0(in 0 cached 0 cache_write 0) | length0 whole(in 19 cached 18 cache_write 0 out 24) |"
    );
    let early = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":7,"output_tokens_details":{"thinking_tokens":2}}}"#;
    let late = r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":3}}"#;
    assert_eq!(
        stream(Anthropic, &[early, late]),
        "whole(out 7 reasoning 2) | whole(in 3 out 7 reasoning 2) |"
    );
}

/// A zero is a count only where the prompt's tokens have moved to another name.
#[test]
fn anthropic_zeros_overwrite_no_prompt() {
    let start = |usage: &str| {
        format!(r#"{{"type":"message_start","message":{{"usage":{{{usage},"output_tokens":1}}}}}}"#)
    };
    let end = |usage: &str| {
        format!(r#"{{"type":"message_delta","delta":{{}},"usage":{{{usage},"output_tokens":25}}}}"#)
    };
    let all = r#""input_tokens":1500,"cache_creation_input_tokens":200,"cache_read_input_tokens":300"#;
    let [own, created, read] = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
        .map(|name| format!(r#""{name}":0"#));
    let kept = "whole(in 2000 cached 300 cache_write 200 out 25) |";
    for (first, last, expected) in [
        (all, own.clone(), kept),
        (all, format!("{own},{created},{read}"), kept),
        (all, format!(r#"{own},"cache_read_input_tokens":300"#), kept),
        (
            r#""input_tokens":2000"#,
            format!(r#"{own},"cache_read_input_tokens":1990"#),
            "whole(in 1990 cached 1990 out 25) |",
        ),
        (&own, r#""input_tokens":7"#.to_owned(), "whole(in 7 out 25) |"),
        (r#""input_tokens":9"#, r#""input_tokens":7"#.to_owned(), "whole(in 7 out 25) |"),
    ] {
        let frames = [start(first), end(&last)];
        let seen = stream(Anthropic, &frames.each_ref().map(String::as_str));
        assert!(seen.ends_with(expected), "{first} then {last}: {seen}");
    }
    let frames = [start(all), end(&own), end(&own).replace("25", "0")];
    let twice = stream(Anthropic, &frames.each_ref().map(String::as_str));
    assert!(twice.ends_with(kept), "{twice}");
}

#[test]
fn an_unstreamed_message_yields_its_events() {
    let body = r#"{"id":"m1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"dig","input":{"text":"x","usage":{"output_tokens":9}}}],"model":"m","stop_reason":"tool_use","usage":{"cache_read_input_tokens":18,"input_tokens":1,"output_tokens":24}}"#;
    assert_eq!(whole(Anthropic, body), "reasoning0/2 text0/2 tool0/3 tools0 whole(in 19 cached 18 out 24) |");
    assert_eq!(stream(Anthropic, &[body]), whole(Anthropic, body));
    assert_eq!(whole(Anthropic, r#"{"type":"error","error":{"type":"x"}}"#), "error |");
    assert_eq!(whole(Anthropic, r#"{"input_tokens":12}"#), "other |");
}

#[test]
fn cohere_frames_yield_their_events() {
    let cases = [
        (r#"{"type":"message-start","id":"c","delta":{"message":{"role":"assistant"}}}"#, "role0 |"),
        (
            r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
            "meta |",
        ),
        (r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi"}}}}"#, "text0/2 |"),
        (r#"{"type":"content-delta","delta":{"message":{"content":{"thinking":"hmm"}}}}"#, "reasoning0/3 |"),
        (r#"{"delta":{"message":{"tool_plan":"dig"}},"type":"tool-plan-delta"}"#, "reasoning0/3 |"),
        (
            r#"{"type":"tool-call-start","delta":{"message":{"tool_calls":{"id":"t","function":{"name":"dig","arguments":""}}}}}"#,
            "tool0/3 |",
        ),
        (
            r#"{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}"#,
            "tool0/2 |",
        ),
        (r#"{"type":"tool-call-end","index":0}"#, "meta |"),
        (
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1.0},"tokens":{"input_tokens":12.0,"output_tokens":3.0},"cached_tokens":4.0}}}"#,
            "stop0 whole(in 1 cached 1 out 3 used_in 12) |",
        ),
        (
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":12.0,"output_tokens":3.0},"billed_units":{"input_tokens":7.0,"output_tokens":2.0,"search_units":1}}}}"#,
            "stop0 whole(in 7 out 2 used_in 12 used_out 3) |",
        ),
        (
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":12,"output_tokens":3},"billed_units":{"input_tokens":12,"output_tokens":0}}}}"#,
            "stop0 whole(in 12 out 3) |",
        ),
        (
            r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":1.5}}}}"#,
            "tools0 whole(rejected 1) |",
        ),
        (r#"{"type":"message-end","delta":{"finish_reason":"ERROR"}}"#, "abort0 |"),
        ("[DONE]", "done |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Cohere, &[frame]), expected, "{frame}");
    }
    let body = r#"{"id":"c","finish_reason":"MAX_TOKENS","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"usage":{"tokens":{"input_tokens":12.0,"output_tokens":3.0}}}"#;
    assert_eq!(whole(Cohere, body), "text0/2 length0 whole(in 12 out 3) |");
}

#[test]
fn transcription_frames_yield_their_events() {
    let cases = [
        (
            r#"{"object":"transcription.chunk","model":"m","choices":[{"delta":{"content":" so"},"finish_reason":null}]}"#,
            "text0/3 |",
        ),
        (r#"{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}"#, "stop0 |"),
        (r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#, "whole(in 9 out 2) |"),
        (r#"{"type":"transcript.text.delta","delta":" so"}"#, "text0/3 |"),
        (r#"{"type":"transcript.text.segment","text":"so"}"#, "meta |"),
        (
            r#"{"type":"transcript.text.done","text":" so","usage":{"type":"tokens","input_tokens":9,"output_tokens":2}}"#,
            "stop0 whole(in 9 out 2) done |",
        ),
        (r#"{"error":{"message":"boom"}}"#, "error |"),
        ("[DONE]", "done |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Transcription, &[frame]), expected, "{frame}");
    }
    assert_eq!(whole(Transcription, r#"{"text":"so","usage":{"type":"duration","seconds":4}}"#), "text0/2 |");
    assert_eq!(
        whole(
            Anthropic,
            r#"{"type":"message","content":[{"type":"text","text":"so"}],"choices":[],"usage":{"input_tokens":3,"output_tokens":2}}"#
        ),
        "text0/2 whole(in 3 out 2) |"
    );
    assert_eq!(
        whole(
            Transcription,
            r#"{"text":"so","choices":[{"index":0,"message":{"content":"abc"}}],"usage":{"input_tokens":3,"output_tokens":2}}"#
        ),
        "empty0 choice0(in 3 out 2) |"
    );
    let body = r#"{"text":"so","usage":{"type":"tokens","input_tokens":9,"output_tokens":2}}"#;
    assert_eq!(whole(Transcription, body), "text0/2 whole(in 9 out 2) |");
}

/// Deltas of one shape are recognised and yield the same events.
#[test]
fn typed_deltas_have_a_shape() {
    for (dialect, head, tail) in [
        (
            Responses,
            r#"{"type":"response.output_text.delta","sequence_number":"#,
            r#","delta":"token","logprobs":[]}"#,
        ),
        (
            Anthropic,
            r#"{"type":"content_block_delta","index":"#,
            r#","delta":{"type":"text_delta","text":"token"}}"#,
        ),
        (
            Cohere,
            r#"{"type":"content-delta","index":"#,
            r#","delta":{"message":{"content":{"text":"token"}}}}"#,
        ),
        (
            GeminiInteractions,
            r#"{"event_type":"step.delta","index":"#,
            r#","delta":{"type":"text","text":"token"}}"#,
        ),
    ] {
        let body: String = (0..20).map(|n| format!("event: x\ndata: {head}{n}{tail}\n\n")).collect();
        assert_eq!(short(&scan_every_way(dialect, Sse, &body)), vec!["text0/5 |"; 20].join(" "));
        let mut scanner = crate::Scanner::new(dialect, Sse);
        scanner.feed(body.as_bytes(), &mut super::Seen::default());
        let work = scanner.work();
        assert!(work.matched > work.fed * 9 / 10, "{dialect:?}: {work:?}");
    }
}

/// A server may answer in the shape of another path: its usage counts where the path's own names are absent.
#[test]
fn usage_by_another_dialects_names_is_counted() {
    const CHAT: &str = r#"{"object":"chat.completion","choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    const RESPONSE: &str =
        r#"{"object":"response","output":[],"usage":{"input_tokens":9,"output_tokens":2}}"#;
    for dialect in [Anthropic, Cohere, Gemini] {
        for body in [CHAT, RESPONSE] {
            let events = whole(dialect, body);
            assert!(events.contains("whole(in 9 out 2)"), "{dialect:?} {body}: {events}");
        }
        let refused = whole(dialect, &CHAT.replace(":9", ":-9"));
        assert!(!refused.contains("in "), "{dialect:?}: {refused}");
    }
    for (dialect, own) in [
        (
            Anthropic,
            r#"{"content":[],"usage":{"input_tokens":1,"cache_read_input_tokens":8,"output_tokens":2,"prompt_tokens":70,"completion_tokens":70}}"#,
        ),
        (
            Cohere,
            r#"{"message":{},"usage":{"tokens":{"input_tokens":9,"output_tokens":2},"input_tokens":70,"output_tokens":70}}"#,
        ),
        (
            Gemini,
            r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2},"usage":{"prompt_tokens":70,"output_tokens":70}}"#,
        ),
        (
            Gemini,
            r#"{"usage":{"prompt_tokens":70,"output_tokens":70},"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2}}"#,
        ),
    ] {
        let events = whole(dialect, own);
        assert!(
            events.contains("in 9") && events.contains("out 2") && !events.contains("70"),
            "{own}: {events}"
        );
    }
}
