//! Usages of hosted APIs and of gateways, as their documents and their users show them.

use crate::Dialect;
use crate::Dialect::{Embeddings, Gemini, OpenaiChat as Chat, OpenaiCompletions, Transcription, Unknown};

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

/// Results of tools that the server ran (Mistral), and checks of the prompt (Snowflake), are tokens of the prompt that
/// only the total includes. So are tokens below an unknown name that is none of an answer.
#[test]
fn tokens_beside_the_prompt_are_of_the_prompt() {
    for (members, expected) in [
        (
            r#""total_tokens":7355,"connector_tokens":7112,"connectors":{"web_search":1}"#,
            "whole(in 7300 out 55) |",
        ),
        (r#""connector_tokens":7112,"total_tokens":7355"#, "whole(in 7300 out 55) |"),
        (r#""guardrails_tokens":2,"total_tokens":245"#, "whole(in 190 out 55) |"),
        (r#""total_tokens":253,"search_tokens":10"#, "unknown(search_tokens) whole(in 198 out 55) |"),
        (
            r#""total_tokens":256,"search_tokens":10,"completion_tokens_details":{"reasoning_tokens":3}"#,
            "unknown(search_tokens) whole(in 198 out 55 reasoning 3) |",
        ),
        // They are inside, or no sum explains them, or the total is missing, or the answer has them.
        (r#""total_tokens":243,"connector_tokens":95"#, "whole(in 188 out 55) |"),
        (r#""total_tokens":300,"connector_tokens":95"#, "whole(in 188 out 55) |"),
        (r#""connector_tokens":95"#, "whole(in 188 out 55) |"),
        (r#""connector_tokens":null,"total_tokens":243"#, "whole(in 188 out 55) |"),
        (
            r#""total_tokens":253,"thinking_output_tokens":10"#,
            "unknown(thinking_output_tokens) whole(in 188 out 55) |",
        ),
    ] {
        let usage = format!(r#"{{"prompt_tokens":188,"completion_tokens":55,{members}}}"#);
        assert_eq!(stream(Chat, &[&chat(&usage)]), expected, "{members}");
        let body = format!(r#"{{"object":"conversation.response","outputs":[],"usage":{usage}}}"#);
        assert_eq!(whole(Unknown, &body), expected, "{members}");
    }
    let done = r#"{"type":"conversation.response.done","usage":{"prompt_tokens":10,"completion_tokens":8,"total_tokens":22,"connector_tokens":4}}"#;
    assert_eq!(stream(Unknown, &[done]), "text0/0 running0(in 14 out 8) |");
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
