//! Usages of hosted APIs and of gateways, as their documents and their users show them.

use crate::Dialect;
use crate::Dialect::{
    Anthropic, BedrockConverse, Embeddings, Gemini, OpenaiChat as Chat, OpenaiCompletions,
    OpenaiResponses as Responses, Transcription, Unknown,
};

fn stream(dialect: Dialect, payloads: &[&str]) -> String {
    without_totals(super::stream(dialect, payloads))
}

fn lines(dialect: Dialect, lines: &[&str]) -> String {
    without_totals(super::lines(dialect, lines))
}

fn whole(dialect: Dialect, body: &str) -> String {
    without_totals(super::whole(dialect, body))
}

fn without_totals(mut events: String) -> String {
    const TOTAL: &str = " total ";
    while let Some(at) = events.find(TOTAL) {
        let number = at + TOTAL.len();
        let end =
            events[number..].find(|c: char| !c.is_ascii_digit()).map_or(events.len(), |len| number + len);
        events.replace_range(at..end, "");
    }
    events
}

fn chat(usage: &str) -> String {
    format!(r#"{{"choices":[],"usage":{usage}}}"#)
}

/// new-api writes the names of both APIs of OpenAI, with zeros below those of the other one.
#[test]
fn zero_below_a_second_name_is_not_a_count() {
    let chats = r#""prompt_tokens":9,"completion_tokens":4,"total_tokens":13"#;
    let zeros = r#""input_tokens":0,"output_tokens":0,"input_tokens_details":null"#;
    for usage in [format!("{{{chats},{zeros}}}"), format!("{{{zeros},{chats}}}")] {
        assert_eq!(stream(Chat, &[&chat(&usage)]), "whole(in 9 out 4) |", "{usage}");
        assert_eq!(whole(OpenaiCompletions, &chat(&usage)), "whole(in 9 out 4) |", "{usage}");
        assert_eq!(whole(Unknown, &chat(&usage)), "whole(in 9 out 4) |", "{usage}");
        assert_eq!(whole(Gemini, &chat(&usage)), "whole(in 9 out 4) |", "{usage}");
        let list = format!(r#"{{"object":"list","data":[],"usage":{usage}}}"#);
        assert_eq!(whole(Embeddings, &list), "whole(in 9 out 4) |", "{usage}");
    }
    let zeros = r#"{"prompt_tokens":0,"completion_tokens":0,"input_tokens":0,"output_tokens":0}"#;
    assert_eq!(stream(Chat, &[&chat(zeros)]), "whole(in 0 out 0) |");
}

/// JSON of Protocol Buffers has numbers of 64 bits as strings (YandexGPT).
#[test]
fn count_may_be_in_a_string() {
    let strings =
        r#"{"prompt_tokens":"9","completion_tokens":"4","prompt_tokens_details":{"cached_tokens":"2"}}"#;
    assert_eq!(stream(Chat, &[&chat(strings)]), "whole(in 9 cached 2 out 4) |");
    let line = |output: u32| {
        format!(
            r#"{{"result":{{"alternatives":[{{"status":"ALTERNATIVE_STATUS_PARTIAL"}}],"usage":{{"inputTextTokens":"9","completionTokens":"{output}","totalTokens":"{}"}}}}}}"#,
            9 + output
        )
    };
    assert_eq!(whole(Unknown, &line(4)), "whole(in 9 out 4) |");
    assert_eq!(
        lines(Unknown, &[&line(1), &line(4)]),
        "text0/0 running0(in 9 out 1) | text0/0 running0(in 9 out 4) |"
    );
    for text in ["", "nine", "-9", "9 tokens", "99999999999999999999999"] {
        let usage = format!(r#"{{"prompt_tokens":"{text}","completion_tokens":4}}"#);
        assert_eq!(stream(Chat, &[&chat(&usage)]), "whole(out 4 rejected 1) |", "{text}");
    }
}

/// Results of tools that the server ran (Mistral), checks of the prompt (Snowflake), and tokens below an unknown name that is
/// none of an answer may stand beside the prompt.
#[test]
fn tokens_that_may_stand_beside_the_prompt_are_counted_apart() {
    for (members, expected) in [
        (
            r#""total_tokens":7355,"connector_tokens":7112,"connectors":{"web_search":1}"#,
            "whole(in 188 out 55 beside 7112) |",
        ),
        (r#""connector_tokens":95,"guardrails_tokens":2"#, "whole(in 188 out 55 beside 2) |"),
        (
            r#""search_tokens":10,"page_tokens":3"#,
            "unknown(search_tokens) unknown(page_tokens) whole(in 188 out 55 beside 13) |",
        ),
        (r#""connector_tokens":null,"total_tokens":243"#, "whole(in 188 out 55) |"),
        (r#""thinking_output_tokens":10"#, "unknown(thinking_output_tokens) whole(in 188 out 55) |"),
    ] {
        let usage = format!(r#"{{"prompt_tokens":188,"completion_tokens":55,{members}}}"#);
        assert_eq!(stream(Chat, &[&chat(&usage)]), expected, "{members}");
        let body = format!(r#"{{"object":"conversation.response","outputs":[],"usage":{usage}}}"#);
        assert_eq!(whole(Unknown, &body), expected, "{members}");
    }
    let done = r#"{"type":"conversation.response.done","usage":{"prompt_tokens":10,"completion_tokens":8,"total_tokens":22,"connector_tokens":4}}"#;
    assert_eq!(stream(Unknown, &[done]), "text0/0 running0(in 10 out 8 beside 4) |");
}

/// The speaker's words of Mistral's transcriptions are in the total, and in the details of only some answers.
#[test]
fn words_of_a_speaker_are_of_the_prompt() {
    for (members, expected) in [
        (r#""total_tokens":3264"#, "in 2629 audio_in 2625 out 635"),
        (
            r#""total_tokens":3264,"prompt_tokens_details":{"cached_tokens":368}"#,
            "in 2629 cached 368 audio_in 2625 out 635",
        ),
        (
            r#""total_tokens":3264,"prompt_tokens_details":{"audio_tokens":2625}"#,
            "in 2629 audio_in 2625 out 635",
        ),
        (r#""total_tokens":639"#, "in 4 out 635"),
        (r#""total_tokens":600"#, "in 4 out 635"),
        ("\"prompt_audio_seconds\":203", "in 4 out 635"),
        (r#""prompt_audio_seconds":203,"total_tokens":3264"#, "in 2629 audio_in 2625 out 635"),
    ] {
        let usage = format!(r#"{{"prompt_tokens":4,"completion_tokens":635,{members}}}"#);
        let body = format!(r#"{{"model":"v","text":"Ja.","language":null,"usage":{usage}}}"#);
        assert_eq!(whole(Transcription, &body), format!("text0/3 whole({expected}) |"), "{members}");
        let done = format!(r#"{{"type":"transcription.done","text":"Ja.","usage":{usage}}}"#);
        let delta = r#"{"type":"transcription.text.delta","text":"Ja."}"#;
        assert_eq!(
            stream(
                Transcription,
                &[r#"{"type":"transcription.language","audio_language":"da"}"#, delta, &done]
            ),
            format!("meta | text0/3 | stop0 whole({expected}) done |"),
            "{members}"
        );
    }
}

/// Code Assist has the frames of Gemini below `response`.
#[test]
fn frames_of_gemini_may_be_below_a_response() {
    let frame = |text: &str, end: &str, usage: &str| {
        format!(
            r#"{{"response":{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{text}"}}]}}{end}}}],"usageMetadata":{{{usage}}},"modelVersion":"m"}},"traceId":"t"}}"#
        )
    };
    let first = frame("a", "", r#""promptTokenCount":9,"totalTokenCount":9"#);
    let last = frame(
        "b",
        r#","finishReason":"STOP""#,
        r#""promptTokenCount":9,"cachedContentTokenCount":5,"candidatesTokenCount":4,"thoughtsTokenCount":3"#,
    );
    let end = "text0/1 stop0 whole(in 9 cached 5 out 7 reasoning 3) |";
    assert_eq!(stream(Gemini, &[&first, &last]), format!("text0/1 running0(in 9) | {end}"));
    assert_eq!(whole(Gemini, &last), end);
}

/// Providers whose answers have shapes of their own, at paths of their own.
#[test]
fn counts_of_unknown_shapes_are_read() {
    for (body, expected) in [
        // OCI, Vercel's AI gateway in two versions, Amazon Nova
        (
            r#"{"modelId":"m","chatResponse":{"choices":[],"usage":{"promptTokens":17,"completionTokens":3,"totalTokens":20,"promptTokensDetails":{"cachedTokens":5},"completionTokensDetails":{"reasoningTokens":2,"acceptedPredictionTokens":1}}}}"#,
            "in 17 cached 5 out 3 reasoning 2",
        ),
        (
            r#"{"usage":{"inputTokens":{"total":19,"noCache":9,"cacheRead":10,"cacheWrite":0},"outputTokens":{"total":6,"text":4,"reasoning":2}}}"#,
            "in 19 cached 10 cache_write 0 out 6 reasoning 2",
        ),
        (
            r#"{"usage":{"inputTokens":19,"outputTokens":6,"totalTokens":25,"reasoningTokens":2,"cachedInputTokens":10}}"#,
            "in 19 cached 10 out 6 reasoning 2",
        ),
        (
            r#"{"output":{},"usage":{"inputTokens":10,"outputTokens":20,"totalTokens":130,"cacheReadInputTokenCount":100,"cacheWriteInputTokenCount":0}}"#,
            "in 110 cached 100 cache_write 0 out 20",
        ),
        // Bedrock's Llama and Titan
        (r#"{"generation":"x","prompt_token_count":26,"generation_token_count":4}"#, "in 26 out 4"),
        (r#"{"inputTextTokenCount":5,"results":[{"tokenCount":9,"outputText":"x"}]}"#, "in 5 out 9"),
        (r#"{"embedding":[0.1],"inputTextTokenCount":7}"#, "in 7"),
        // LM Studio
        (
            r#"{"output":[],"stats":{"input_tokens":46,"total_output_tokens":58,"reasoning_output_tokens":19,"tokens_per_second":29.7}}"#,
            "in 46 out 58 reasoning 19",
        ),
        // Cohere's first version
        (
            r#"{"text":"Hi","meta":{"billed_units":{"input_tokens":9,"output_tokens":20},"tokens":{"input_tokens":17,"output_tokens":244}}}"#,
            "in 9 out 20 used_in 17 used_out 244",
        ),
        (r#"{"text":"Hi","meta":{"tokens":{"input_tokens":17,"output_tokens":24}}}"#, "in 17 out 24"),
        // Replicate, DeepInfra, Aleph Alpha
        (r#"{"output":[],"metrics":{"input_token_count":18,"output_token_count":40}}"#, "in 18 out 40"),
        (r#"{"inference_status":{"tokens_input":12,"tokens_generated":40},"results":[]}"#, "in 12 out 40"),
        (r#"{"completions":[],"num_tokens_prompt_total":9,"num_tokens_generated":7}"#, "in 9 out 7"),
        // Vertex AI's embeddings
        (
            r#"{"predictions":[{"embeddings":{"values":[0.1],"statistics":{"token_count":3}}},{"embeddings":{"values":[0.1],"statistics":{"token_count":4}}}]}"#,
            "in 7",
        ),
    ] {
        assert_eq!(whole(Unknown, body), format!("whole({expected}) |"), "{body}");
    }
    let ended = r#"{"is_finished":true,"event_type":"stream-end","response":{"text":"Hi","meta":{"billed_units":{"input_tokens":9,"output_tokens":20}}}}"#;
    assert_eq!(lines(Unknown, &[ended]), "text0/0 running0(in 9 out 20) |");
    let ended =
        r#"{"type":"chat.end","result":{"output":[],"stats":{"input_tokens":46,"total_output_tokens":58}}}"#;
    assert_eq!(stream(Unknown, &[ended]), "text0/0 running0(in 46 out 58) |");
}

/// Meta's own answers have a list of named numbers, and no choices.
#[test]
fn counts_in_a_list_are_read() {
    let metrics = r#"[{"metric":"num_completion_tokens","value":25,"unit":"tokens"},{"metric":"time_ms","value":1.5},{"metric":"num_prompt_tokens","value":33,"unit":"tokens"},{"metric":"num_total_tokens","value":58,"unit":"tokens"}]"#;
    let body = format!(
        r#"{{"id":"r","completion_message":{{"role":"assistant","content":{{"type":"text","text":"a"}},"stop_reason":"stop"}},"metrics":{metrics}}}"#
    );
    let progress = r#"{"id":"r","event":{"event_type":"progress","delta":{"type":"text","text":"a"}}}"#;
    let end = format!(
        r#"{{"id":"r","event":{{"event_type":"metrics","delta":{{"type":"text","text":""}},"metrics":{metrics}}}}}"#
    );
    for dialect in [Chat, Unknown] {
        assert_eq!(whole(dialect, &body), "whole(in 33 out 25) |");
    }
    assert_eq!(stream(Chat, &[progress, &end]), "other | whole(in 33 out 25) |");
    assert_eq!(stream(Unknown, &[progress, &end]), "text0/0 | text0/0 running0(in 33 out 25) |");
    // vLLM's object of times.
    let times = r#"{"choices":[],"metrics":{"generation_time_ms":2,"value":7}}"#;
    assert_eq!(stream(Chat, &[times]), "meta times(decode 2000000) |");
}

/// A usage below any member counts where there is no other: what the client sent, and the server repeats, does not.
#[test]
fn usage_of_an_unknown_shape_may_be_below_a_member() {
    let usage = r#"{"prompt_tokens":1033,"prompt_unit_price":"0.001","completion_tokens":135,"total_tokens":1168,"latency":1.38}"#;
    for body in [
        // dify, SAP's orchestration, Salesforce
        format!(
            r#"{{"event":"message","answer":"a","metadata":{{"usage":{usage},"retriever_resources":[]}}}}"#
        ),
        format!(
            r#"{{"request_id":"r","orchestration_result":{{"object":"chat.completion","choices":[],"usage":{usage}}}}}"#
        ),
        format!(
            r#"{{"generation":{{"generatedText":"a"}},"parameters":{{"provider":"openai","usage":{usage}}}}}"#
        ),
        // Repeated members of a request, and the server's own usage.
        format!(r#"{{"metadata":{{"usage":{{"prompt_tokens":1,"total_tokens":2}}}},"usage":{usage}}}"#),
        format!(
            r#"{{"usage":{usage},"metadata":{{"usage":{{"prompt_tokens":1,"input_tokens":3,"total_tokens":2,"my_tokens":9}}}}}}"#
        ),
        format!(r#"{{"usage":{usage},"metadata":{{"usage":null}},"x":{{"usage":{{}}}}}}"#),
    ] {
        let seen = whole(Unknown, &body).replace("unknown(my_tokens) ", "");
        assert_eq!(seen, "whole(in 1033 out 135) |", "{body}");
    }
    let end = format!(r#"{{"event":"message_end","metadata":{{"usage":{usage}}}}}"#);
    assert_eq!(stream(Unknown, &[&end]), "text0/0 running0(in 1033 out 135) |");
    // In a known dialect it is the client's.
    assert_eq!(whole(Chat, &format!(r#"{{"choices":[],"metadata":{{"usage":{usage}}}}}"#)), "meta |");
}

#[test]
fn names_of_a_usage_may_have_any_style() {
    let hunyuan = r#"{"PromptTokens":9,"CompletionTokens":4,"TotalTokens":13,"PromptTokensDetails":{"CachedTokens":5}}"#;
    for body in [
        format!(r#"{{"Response":{{"Usage":{hunyuan},"Choices":[],"Id":"x"}}}}"#),
        format!(r#"{{"Note":"n","Choices":[],"Usage":{hunyuan}}}"#),
    ] {
        assert_eq!(whole(Unknown, &body), "whole(in 9 cached 5 out 4) |", "{body}");
        assert_eq!(stream(Unknown, &[&body]), "text0/0 running0(in 9 cached 5 out 4) |", "{body}");
    }
    for names in [
        ["promptTokens", "completionTokens", "cachedTokens"],
        ["Prompt_Tokens", "COMPLETION_TOKENS", "cached_Tokens"],
    ] {
        let [input, output, cached] = names;
        let usage = format!(r#"{{"{input}":9,"{output}":4,"{cached}":5}}"#);
        for dialect in [Chat, Unknown] {
            assert_eq!(whole(dialect, &chat(&usage)), "whole(in 9 cached 5 out 4) |", "{usage}");
        }
    }
    let metadata = r#"{"candidates":[],"usageMetadata":{"prompt_token_count":9,"candidates_token_count":4,"thoughts_token_count":3}}"#;
    assert_eq!(whole(Gemini, metadata), "whole(in 9 out 7 reasoning 3) |");
    // Other words are another member.
    assert_eq!(
        stream(Chat, &[&chat(r#"{"prompt_tokens":9,"completion_tokens":4,"PromptTokensOfCache":5}"#)]),
        "unknown(PromptTokensOfCache) whole(in 9 out 4 beside 5) |"
    );
}

/// Voyage's multimodal embeddings state pixels beside tokens, and the total has the tokens of both.
#[test]
fn total_of_a_multimodal_embedding_is_the_prompt() {
    let body = r#"{"object":"list","data":[{"object":"embedding","embedding":[0.5],"index":0}],"model":"v","usage":{"text_tokens":5,"image_pixels":2000000,"video_pixels":0,"total_tokens":3576}}"#;
    for dialect in [Embeddings, Unknown] {
        assert_eq!(whole(dialect, body), "whole(in 3576) |");
    }
}

/// Usages that users of gateways and clients reported in 2026, each with the right numbers.
#[test]
fn reported_usages_are_read_right() {
    // one-switch 5: the names of a chat are zeros, those of a response have the counts.
    let two = r#"{"prompt_tokens":0,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"input_tokens":38829,"output_tokens":477,"input_tokens_details":{"cached_tokens":38272},"cache_hit_tokens":38272,"total_tokens":39306}"#;
    // laravel/ai 846: what was written to the cache is a part of the prompt.
    let written = r#"{"input_tokens":18014,"input_tokens_details":{"cache_write_tokens":18011,"cached_tokens":0},"output_tokens":9}"#;
    for (usage, expected) in
        [(two, "in 38829 cached 38272 out 477"), (written, "in 18014 cached 0 cache_write 18011 out 9")]
    {
        assert_eq!(stream(Chat, &[&chat(usage)]), format!("whole({expected}) |"));
        assert_eq!(whole(Unknown, &chat(usage)), format!("whole({expected}) |"));
        let done =
            format!(r#"{{"type":"response.completed","response":{{"status":"completed","usage":{usage}}}}}"#);
        assert_eq!(stream(Responses, &[&done]), format!("stop0 choice({expected}) done |"));
    }
    // envoy/ai-gateway 2184, LiteLLM 34351: an answer that ended otherwise has a usage, too.
    for (kind, end) in [
        ("incomplete", "ended0 choice(in 5 out 1024 reasoning 417) done |"),
        ("failed", "error choice(in 5 out 1024 reasoning 417) done |"),
    ] {
        let frame = format!(
            r#"{{"type":"response.{kind}","response":{{"status":"{kind}","usage":{{"input_tokens":5,"output_tokens":1024,"output_tokens_details":{{"reasoning_tokens":417}},"total_tokens":1029}}}}}}"#
        );
        assert_eq!(stream(Responses, &[&frame]), end);
    }
    // bifrost 6598: the first frame has the whole prompt, and the last one its parts. envoy/ai-gateway 2236: zeros in one
    // of both frames. vLLM 40912: the parts are known at the end only.
    let message = |start: &str, end: &str| {
        let start =
            format!(r#"{{"type":"message_start","message":{{"usage":{{{start},"output_tokens":1}}}}}}"#);
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{{{end},"output_tokens":16}}}}"#
        );
        let seen = stream(Anthropic, &[&start, &end]);
        seen.rsplit_once("whole").expect("a usage").1.to_owned()
    };
    let zeros = r#""input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0"#;
    let parts = r#""input_tokens":9,"cache_read_input_tokens":5,"cache_creation_input_tokens":2"#;
    let all = "(in 16 cached 5 cache_write 2 out 16) |";
    assert_eq!(message(r#""input_tokens":16"#, parts), all);
    assert_eq!(message(parts, zeros), all);
    assert_eq!(message(zeros, parts), all);
    assert_eq!(
        message(
            r#""input_tokens":16,"cache_read_input_tokens":null"#,
            r#""input_tokens":11,"cache_read_input_tokens":5"#
        ),
        "(in 16 cached 5 out 16) |"
    );
}

/// The total decides what is beside what, with parts that a dialect itself counts apart.
#[test]
fn unknown_tokens_stand_beside_other_parts() {
    let converse = |members: &str| {
        format!(
            r#"{{"output":{{"message":{{"content":[]}}}},"stopReason":"end_turn","usage":{{"inputTokens":2,"outputTokens":4,"cacheReadInputTokens":7,{members}}}}}"#
        )
    };
    assert_eq!(
        whole(BedrockConverse, &converse(r#""visionTokens":5,"totalTokens":18"#)),
        "unknown(visionTokens) stop0 choice0(in 9 cached 7 out 4 beside 5) |"
    );
    let gemini = |members: &str| {
        format!(
            r#"{{"candidates":[{{"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":40,"candidatesTokenCount":9,{members}}}}}"#
        )
    };
    for (members, expected) in [
        // Thoughts and results of tools stand beside, as documented, or inside, as some gateways count.
        (
            r#""thoughtsTokenCount":3,"toolUsePromptTokenCount":10,"totalTokenCount":62"#,
            "in 50 out 12 reasoning 3",
        ),
        (r#""thoughtsTokenCount":3,"toolUsePromptTokenCount":10"#, "in 50 out 12 reasoning 3"),
        (
            r#""thoughtsTokenCount":3,"toolUsePromptTokenCount":10,"totalTokenCount":52"#,
            "in 40 out 12 reasoning 3",
        ),
        (
            r#""thoughtsTokenCount":3,"toolUsePromptTokenCount":10,"totalTokenCount":59"#,
            "in 50 out 9 reasoning 3",
        ),
        (
            r#""thoughtsTokenCount":3,"toolUsePromptTokenCount":10,"totalTokenCount":49"#,
            "in 40 out 9 reasoning 3",
        ),
        (r#""thoughtsTokenCount":3,"totalTokenCount":49"#, "in 40 out 9 reasoning 3"),
        // No whole can hold them, or no sum explains the total.
        (r#""thoughtsTokenCount":30,"totalTokenCount":49"#, "in 40 out 39 reasoning 30"),
        (r#""thoughtsTokenCount":3,"totalTokenCount":50"#, "in 40 out 12 reasoning 3"),
        (
            r#""thoughtsTokenCount":3,"visionTokenCount":5,"totalTokenCount":57"#,
            "in 40 out 12 reasoning 3 beside 5",
        ),
    ] {
        let seen = whole(Gemini, &gemini(members)).replace("unknown(visionTokenCount) ", "");
        assert_eq!(seen, format!("stop0 whole({expected}) |"), "{members}");
    }
}
