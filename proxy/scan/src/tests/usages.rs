//! Usage objects: the names of their members, their places in a frame, passes, and members that are not read.

use super::{lines, stream, whole};
use crate::Dialect;
use crate::Dialect::{
    Anthropic, Embeddings, Gemini, GeminiInteractions, OllamaChat, OpenaiChat as Chat,
    OpenaiResponses as Responses, Realtime, Unknown,
};

/// A frame of a chat with the end of its answer and this usage.
fn chat(usage: &str) -> String {
    format!(
        r#"{{"choices":[{{"index":0,"message":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
    )
}

#[test]
fn every_name_of_a_count_is_read() {
    for (members, expected) in [
        (r#""cached_tokens":7"#, "cached 7 "),
        (r#""num_cached_tokens":7"#, "cached 7 "),
        (r#""prompt_cache_hit_tokens":7,"prompt_cache_miss_tokens":2"#, "cached 7 "),
        (r#""cache_read_input_tokens":7,"cache_creation_input_tokens":1"#, "cached 7 cache_write 1 "),
        // A zero in one of two places says nothing.
        (r#""cached_tokens":7,"prompt_tokens_details":{"cached_tokens":0}"#, "cached 7 "),
        (r#""prompt_tokens_details":{"cached_tokens":7},"cached_tokens":0"#, "cached 7 "),
        (r#""prompt_tokens_details":{"cache_creation_input_tokens":3}"#, "cache_write 3 "),
        (
            r#""prompt_tokens_details":{"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":2}}"#,
            "cache_write 5 cache_write_1h 2 ",
        ),
        (r#""prompt_token_details":{"audio_tokens":3}"#, "audio_in 3 "),
        (r#""input_token_details":{"image_tokens":3}"#, "image_in 3 "),
        (r#""image_tokens":3,"video_tokens":2"#, "image_in 3 video_in 2 "),
        (
            r#""prompt_tokens_details":{"cached_tokens":5,"cached_tokens_details":{"audio_tokens":3,"image_tokens":1,"text_tokens":1}}"#,
            "cached 5 cached_audio 3 cached_image 1 ",
        ),
    ] {
        let usage = format!(r#"{{"prompt_tokens":9,{members},"completion_tokens":4}}"#);
        let expected = format!("in 9 {expected}out 4");
        assert_eq!(whole(Chat, &chat(&usage)), format!("text0/1 stop0 choice0({expected}) |"));
        let done =
            format!(r#"{{"type":"response.completed","response":{{"status":"completed","usage":{usage}}}}}"#);
        assert_eq!(stream(Responses, &[&done]), format!("stop0 choice({expected}) done |"));
        let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        assert_eq!(stream(Chat, &[&last]), format!("whole({expected}) |"));
        if !members.contains("cache_read") {
            assert_eq!(whole(Unknown, &format!(r#"{{"usage":{usage}}}"#)), format!("whole({expected}) |"));
        }
    }
    for (members, expected) in [
        (r#""output_tokens_details":{"image_tokens":3}"#, " image_out 3"),
        (r#""completion_tokens_details":{"audio_tokens":3,"video_tokens":1}"#, " audio_out 3 video_out 1"),
        (r#""output_token_details":{"thinking_tokens":3}"#, " reasoning 3"),
    ] {
        let usage = format!(r#"{{"input_tokens":9,"output_tokens":4,{members}}}"#);
        let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        assert_eq!(stream(Chat, &[&last]), format!("whole(in 9 out 4{expected}) |"));
    }
    let done = r#"{"model":"m","message":{"content":"a"},"done":true,"prompt_eval_count":9,"prompt_eval_cached_count":5,"eval_count":2}"#;
    assert_eq!(lines(OllamaChat, &[done]), "text0/1 stop0 choice0(in 9 cached 5 out 2) |");
}

#[test]
fn prompts_have_modalities() {
    for (usage, expected) in [
        (
            r#"{"prompt_tokens":9,"total_tokens":9,"prompt_tokens_details":{"text_tokens":2,"image_tokens":7}}"#,
            "in 9 image_in 7",
        ),
        (r#"{"input_tokens":9,"input_tokens_details":{"audio_tokens":7}}"#, "in 9 audio_in 7"),
        (r#"{"prompt_tokens":9,"cached_tokens":4}"#, "in 9 cached 4"),
    ] {
        let body = format!(r#"{{"object":"list","data":[],"usage":{usage}}}"#);
        assert_eq!(whole(Embeddings, &body), format!("whole({expected}) |"));
    }
    assert_eq!(
        whole(
            Embeddings,
            r#"{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":9,"promptTokensDetails":[{"modality":"TEXT","tokenCount":2},{"modality":"IMAGE","tokenCount":7}]}}"#
        ),
        "whole(in 9 image_in 7) |"
    );
    assert_eq!(
        whole(
            Embeddings,
            r#"{"meta":{"billed_units":{"input_tokens":2,"image_tokens":7},"tokens":{"input_tokens":11}}}"#
        ),
        "whole(in 9 image_in 7) |"
    );
}

#[test]
fn cached_tokens_and_results_of_tools_have_modalities() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":40,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":30}],"cachedContentTokenCount":20,"cacheTokensDetails":[{"modality":"AUDIO","tokenCount":15}],"toolUsePromptTokenCount":10,"toolUsePromptTokensDetails":[{"modality":"AUDIO","tokenCount":4}],"candidatesTokenCount":9}}"#;
    let counts = "in 50 cached 20 audio_in 34 cached_audio 15 out 9";
    assert_eq!(whole(Gemini, body), format!("text0/1 stop0 whole({counts}) |"));
    assert_eq!(whole(Gemini, &format!("[{body}]")), format!("text0/1 stop0 whole({counts}) |"));
    let usage = r#"{"total_input_tokens":40,"input_tokens_by_modality":[{"modality":"audio","tokens":30}],"total_cached_tokens":20,"cached_tokens_by_modality":[{"modality":"audio","tokens":15}],"total_tool_use_tokens":10,"tool_use_tokens_by_modality":[{"modality":"audio","tokens":4}],"total_output_tokens":9}"#;
    let done = format!(
        r#"{{"event_type":"interaction.completed","interaction":{{"status":"completed","usage":{usage}}}}}"#
    );
    assert_eq!(stream(GeminiInteractions, &[&done]), format!("stop0 choice({counts}) done |"));
}

#[test]
fn usage_may_stand_in_a_choice_or_below_a_member_of_the_provider() {
    let text =
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"x_groq":{"id":"r"}}"#;
    let usage = r#"{"prompt_tokens":9,"completion_tokens":4}"#;
    let end = |inside: &str, beside: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"{inside}}}]{beside}}}"#)
    };
    let (inside, beside) =
        (format!(r#","usage":{usage}"#), format!(r#","x_groq":{{"id":"r","usage":{usage}}}"#));
    for last in [end(&inside, ""), end("", &beside), end(&inside, &format!(r#","usage":{usage}"#))] {
        assert_eq!(stream(Chat, &[text, &last]), "text0/1 | stop0 choice0(in 9 out 4) |", "{last}");
    }
    // Each of two answers has its own.
    let two = format!(
        r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"{inside}}},{{"index":1,"delta":{{}},"finish_reason":"stop"{inside}}}]}}"#
    );
    assert_eq!(stream(Chat, &[&two]), "stop0 choice0(in 9 out 4) stop1 choice1(in 9 out 4) |");
    // What the client sent, and an empty usage, count nothing.
    for nothing in [
        r#","metadata":{"usage":{"prompt_tokens":9}}"#,
        r#","x_groq":{"usage":{}}"#,
        r#","x_groq":{"usage":null}"#,
    ] {
        assert_eq!(stream(Chat, &[&end("", nothing)]), "stop0 |", "{nothing}");
    }
    assert_eq!(
        whole(Unknown, &format!(r#"{{"result":{{"response":"a","usage":{usage}}},"success":true}}"#)),
        "whole(in 9 out 4) |"
    );
    let converse = r#"{"output":{},"usage":{"inputTokens":2,"outputTokens":4,"cacheReadInputTokens":7}}"#;
    assert_eq!(whole(Unknown, converse), "whole(in 9 cached 7 out 4) |");
}

#[test]
fn usage_beside_a_part_is_running() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":4,"output_tokens":1}}}"#;
    let part = |usage: &str| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"a"}},"usage":{{{usage}}}}}"#
        )
    };
    let frames = [part(r#""output_tokens":8"#), part(r#""output_tokens":16"#)];
    assert_eq!(
        stream(Anthropic, &[start, &frames[0], &frames[1]]),
        "role0 running0(in 9 cached 4) | text0/1 running0(in 9 cached 4 out 8) | \
         text0/1 running0(in 9 cached 4 out 16) |"
    );
    let frames = [8, 16, 24]
        .map(|n| part(&format!(r#""input_tokens":9,"output_tokens":{n},"total_tokens":{}"#, 9 + n)));
    assert_eq!(
        stream(Anthropic, &[&frames[0], &frames[1], &frames[2]]),
        "text0/1 running0(in 9 out 8) | text0/1 running0(in 9 out 16) | text0/1 running0(in 9 out 24) |"
    );
}

#[test]
fn reasoning_may_be_a_list_in_the_content() {
    let frame = |content: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{content}}},"finish_reason":null}}]}}"#)
    };
    let thinking = r#"[{"type":"thinking","thinking":[{"type":"text","text":"abc"}]}]"#;
    let both = r#"[{"type":"thinking","thinking":[{"type":"text","text":"ab"},{"type":"text","text":"c"}],"closed":true},{"type":"text","text":"The"}]"#;
    assert_eq!(
        stream(Chat, &[&frame(thinking), &frame(both), &frame("\"x\"")]),
        "reasoning0/3 | reasoning0/3 text0/3 | text0/1 |"
    );
    let details = r#"{"choices":[{"index":0,"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","text":"abc"}]}}]}"#;
    assert_eq!(stream(Chat, &[details]), "reasoning0/3 |");
}

#[test]
fn all_passes_that_are_billed_count() {
    let pass = |kind: &str, input: u32, cached: u32, output: u32| {
        format!(
            r#"{{"type":"{kind}","input_tokens":{input},"cache_read_input_tokens":{cached},"cache_creation_input_tokens":0,"output_tokens":{output}}}"#
        )
    };
    let message = pass("message", 10, 2, 3);
    for (passes, expected) in [
        (vec![], "in 12 cached 2 cache_write 0 out 3"),
        (vec![message.clone()], "in 12 cached 2 cache_write 0 out 3"),
        (vec![pass("compaction", 100, 0, 20), message.clone()], "in 112 cached 2 cache_write 0 out 23"),
        (
            vec![message.clone(), pass("advisor_message", 50, 7, 5), message.clone()],
            "in 81 cached 11 cache_write 0 out 11",
        ),
        // The declined attempt of the first model is not billed.
        (
            vec![pass("message", 500, 0, 0), pass("fallback_message", 10, 2, 3)],
            "in 12 cached 2 cache_write 0 out 3",
        ),
        (
            vec![
                pass("compaction", 100, 0, 20),
                pass("message", 500, 0, 1),
                pass("fallback_message", 10, 2, 3),
            ],
            "in 112 cached 2 cache_write 0 out 23",
        ),
    ] {
        let usage = format!(
            r#"{{"input_tokens":10,"cache_read_input_tokens":2,"cache_creation_input_tokens":0,"iterations":[{}],"output_tokens":3}}"#,
            passes.join(",")
        );
        let body = format!(
            r#"{{"type":"message","content":[{{"type":"text","text":"a"}}],"stop_reason":"end_turn","usage":{usage}}}"#
        );
        assert_eq!(whole(Anthropic, &body), format!("text0/1 stop0 whole({expected}) |"), "{usage}");
        let start = format!(
            r#"{{"type":"message_start","message":{{"usage":{{"input_tokens":400,"iterations":[{message}],"output_tokens":1}}}}}}"#
        );
        let end =
            format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#);
        assert_eq!(
            stream(Anthropic, &[&start, &end]),
            format!("role0 running0(in 400) | stop0 whole({expected}) |")
        );
    }
}

#[test]
fn members_with_unknown_tokens_are_named() {
    for (member, name) in [
        (r#""vision_tokens":5"#, Some("vision_tokens")),
        (r#""visionTokenCount":5"#, Some("visionTokenCount")),
        (r#""prompt_tokens_details":{"vision":5}"#, Some("vision")),
        (r#""new_details":{"vision_tokens":5}"#, Some("new_details")),
        (r#""token_details":[{"kind":"x","n":5}]"#, Some("token_details")),
        (r#""vi\u0073ion_tokens":5"#, Some("vision_tokens")),
        (r#""a text with tokens":5"#, Some("_other")),
        (r#""a_very_long_name_of_a_member_with_tokens_that_nobody_would_ever_write":5"#, Some("_other")),
        // Neither a count, nor of tokens.
        (r#""vision_tokens":0"#, None),
        (r#""vision_tokens":null"#, None),
        (r#""vision_tokens":1.5"#, None),
        (r#""web_search_requests":5"#, None),
        (r#""tokens_per_second":5"#, None),
        (r#""time_to_first_token":5"#, None),
        (r#""cost_details":{"upstream_cost":5}"#, None),
        // Known, and knowingly no count of their own.
        (
            r#""completion_tokens_details":{"accepted_prediction_tokens":1,"rejected_prediction_tokens":1,"text_tokens":2}"#,
            None,
        ),
    ] {
        let unknown = name.map(|name| format!("unknown({name}) ")).unwrap_or_default();
        let beside = if name.is_some() { " beside 5" } else { "" };
        let usage = format!(r#"{{"prompt_tokens":9,"completion_tokens":4,{member}}}"#);
        let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let expected = format!("{unknown}whole(in 9 out 4{beside}) | {unknown}whole(in 9 out 4{beside}) |");
        assert_eq!(stream(Chat, &[&last, &last]), expected, "{member}");
        let inner = format!(r#"{{"choices":[],"x_provider":{{"usage":{usage}}}}}"#);
        assert_eq!(stream(Chat, &[&inner]), format!("{unknown}whole(in 9 out 4{beside}) |"), "{member}");
        let done =
            format!(r#"{{"type":"response.completed","response":{{"status":"completed","usage":{usage}}}}}"#);
        assert_eq!(
            stream(Responses, &[&done]),
            format!("{unknown}stop0 choice(in 9 out 4{beside}) done |"),
            "{member}"
        );
        let body = format!(r#"{{"usage":{usage}}}"#);
        assert_eq!(whole(Unknown, &body), format!("{unknown}whole(in 9 out 4{beside}) |"), "{member}");
        assert_eq!(whole(Embeddings, &body), format!("{unknown}whole(in 9 out 4{beside}) |"), "{member}");
    }
    // Outside of a usage a name means nothing.
    let outside = r#"{"vision_tokens":5,"x":{"vision_tokens":5},"choices":[{"index":0,"delta":{"content":"a"},"vision_tokens":5}]}"#;
    assert_eq!(stream(Chat, &[outside]), "text0/1 |");
    for (dialect, body, expected) in [
        (
            Anthropic,
            r#"{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4,"vision_tokens":5}}"#,
            "unknown(vision_tokens) stop0 whole(in 9 out 4 beside 5) |",
        ),
        (
            Gemini,
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"visionTokenCount":5}}"#,
            "unknown(visionTokenCount) whole(in 9 out 4 beside 5) |",
        ),
        (
            Responses,
            r#"{"object":"response","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":4},"tool_usage":{"image_gen":{"input_tokens":40,"output_tokens":7},"web_search":{"num_requests":1}}}"#,
            "unknown(image_gen) unknown(image_gen) stop0 whole(in 9 out 4) |",
        ),
    ] {
        assert_eq!(whole(dialect, body), expected);
    }
}

/// Each dialect with a usage object reports what it does not read in it.
#[test]
fn every_dialect_with_a_usage_reports_unknown_members() {
    let without = [
        Dialect::LlamacppCompletion,
        Dialect::Tgi,
        Dialect::Sglang,
        Dialect::Lmdeploy,
        OllamaChat,
        Dialect::OllamaGenerate,
        Dialect::Triton,
    ];
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !without.contains(dialect)) {
        let name = if dialect == Gemini { "usageMetadata" } else { "usage" };
        let body = format!(r#"{{"{name}":{{"vision_tokens":5}}}}"#);
        let seen = match dialect {
            Realtime => stream(dialect, &[&body]),
            _ => whole(dialect, &body),
        };
        assert!(seen.starts_with("unknown(vision_tokens) "), "{dialect:?}: {seen}");
    }
}
