//! Vectors of the wire formats, by number: counts and their scope.

use super::{stream, whole};
use crate::Dialect::{
    Anthropic, Gemini, LlamacppCompletion as Llamacpp, Lmdeploy, OpenaiChat as Chat,
    OpenaiCompletions as Completions, OpenaiResponses as Responses, Sglang, Tgi, Transcription,
};

#[test]
fn an_empty_reason_is_no_finish() {
    let frame = |text: &str, reason: &str, usage: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"text":"{text}","logprobs":null,"finish_reason":"{reason}"}}]{usage}}}"#
        )
    };
    let frames = [
        frame("a", "", ""),
        frame("b", "", ""),
        frame("c", "eos_token", r#","usage":{"prompt_tokens":1,"completion_tokens":3}"#),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    assert_eq!(stream(Completions, &frames), "text0/1 | text0/1 | text0/1 stop0 choice0(in 1 out 3) |");
}

#[test]
fn empty_list_without_usage_is_meta() {
    assert_eq!(
        stream(Chat, &[r#"{"choices":[],"sglext":{"usage":{"prompt_tokens":1}},"usage":null}"#]),
        "meta |"
    );
}

#[test]
fn llamacpp_counts_each_choice() {
    let usage = |out: u32| {
        format!(
            r#"{{"choices":[],"usage":{{"completion_tokens":{out},"prompt_tokens":7}},"timings":{{"prompt_n":7,"predicted_n":{out}}}}}"#
        )
    };
    let (first, second) = (usage(3), usage(4));
    let text = |n: u32| format!(r#"{{"choices":[{{"index":{n},"delta":{{"content":"a"}}}}]}}"#);
    let (zero, one) = (text(0), text(1));
    assert_eq!(
        stream(Chat, &[&zero, &first, &one, &second, "[DONE]"]),
        "text0/1 | choice(in 7 out 3) | text1/1 | choice(in 7 out 4) | done |"
    );
}

#[test]
fn vllm_has_running_and_final_counts() {
    let running = |n: u32, out: u32| {
        format!(
            r#"{{"choices":[{{"index":{n},"delta":{{"content":"a"}},"finish_reason":null}}],"usage":{{"prompt_tokens":9,"total_tokens":{},"completion_tokens":{out}}}}}"#,
            9 + out
        )
    };
    let frames = [running(0, 1), running(1, 1), running(1, 2), running(0, 2)];
    let mut frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    frames.push(r#"{"choices":[],"usage":{"prompt_tokens":9,"total_tokens":13,"completion_tokens":4}}"#);
    assert_eq!(
        stream(Chat, &frames),
        "text0/1 running0(in 9 out 1 total 10) | text1/1 running1(in 9 out 1 total 10) | \
         text1/1 running1(in 9 out 2 total 11) | text0/1 running0(in 9 out 2 total 11) | \
         whole(in 9 out 4 total 13) |"
    );
}

#[test]
fn the_same_keys_with_opposite_meanings() {
    let frames = |ids: [&str; 3], texts: [&str; 3]| {
        let frame = |n: usize| {
            format!(
                r#"{{"text":"{}","output_ids":[{}],"meta_info":{{"finish_reason":null,"prompt_tokens":5,"completion_tokens":{}}}}}"#,
                texts[n],
                ids[n],
                n + 1
            )
        };
        [frame(0), frame(1), frame(2)]
    };
    let expected = "text0/1=1 running0(in 5 out 1) | text0/4=1 running0(in 5 out 2) | \
                text0/3=1 running0(in 5 out 3) | done |";
    let sglang = frames(["8", "8,40", "8,40,311"], ["A", "A red", "A red ox"]);
    assert_eq!(stream(Sglang, &[&sglang[0], &sglang[1], &sglang[2], "[DONE]"]), expected);
    let lmdeploy = frames(["8", "40", "311"], ["A", " red", " ox"]);
    assert_eq!(stream(Lmdeploy, &[&lmdeploy[0], &lmdeploy[1], &lmdeploy[2], "[DONE]"]), expected);
}

#[test]
fn tokens_without_a_frame() {
    let frame = |out: u32| {
        format!(
            r#"{{"index":0,"content":"a","tokens":[4],"stop":false,"tokens_predicted":{out},"tokens_evaluated":7}}"#
        )
    };
    let (one, nine, twelve) = (frame(1), frame(9), frame(12));
    assert_eq!(
        stream(Llamacpp, &[&one, &nine, &twelve]),
        "text0/1=1 running0(in 7 out 1) | text0/1=1 running0(in 7 out 9) | text0/1=1 running0(in 7 out 12) |"
    );
}

#[test]
fn anthropic_overwrites_counts() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#;
    let end = |usage: &str| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{{{usage}}}}}"#)
    };
    assert_eq!(
        stream(Anthropic, &[start, &end(r#""output_tokens":12"#)]),
        "role0 running0(in 5) | stop0 whole(in 5 out 12) |"
    );
    assert_eq!(
        stream(Anthropic, &[start, &end(r#""input_tokens":7,"output_tokens":12"#)]),
        "role0 running0(in 5) | stop0 whole(in 7 out 12) |"
    );
}

#[test]
fn gemini_counts_thoughts_separately() {
    let frame = |out: u32, thoughts: u32, end: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}}{end}}}],"usageMetadata":{{"promptTokenCount":5,"candidatesTokenCount":{out},"thoughtsTokenCount":{thoughts}}}}}"#
        )
    };
    let frames = [frame(1, 2, ""), frame(2, 4, ""), frame(3, 4, r#","finishReason":"STOP""#)];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    assert_eq!(
        stream(Gemini, &frames),
        "text0/1 running0(in 5 out 3 reasoning 2) | text0/1 running0(in 5 out 6 reasoning 4) | \
         text0/1 stop0 whole(in 5 out 7 reasoning 4) |"
    );
}

#[test]
fn tgis_array_is_one_answer() {
    assert_eq!(whole(Tgi, r#"[{"generated_text":"A red ox"}]"#), "text0/8 stop0 |");
}

#[test]
fn usage_before_a_cut() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    assert_eq!(stream(Chat, &[stop, usage]), "stop0 | whole(in 9 out 4) |");
}

#[test]
fn vllms_rust_front_end() {
    let frames = [
        r#"{"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":" ox"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"en"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    ];
    assert_eq!(stream(Chat, &frames), "role0 | text0/3 | text0/2 | stop0 |");
}

#[test]
fn audio_tokens_of_a_prompt_are_counted() {
    let usage = r#"{"prompt_tokens":40,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":8,"text_tokens":10,"audio_tokens":30},"completion_tokens_details":{"audio_tokens":6}}"#;
    let last = format!(r#"{{"choices":[],"usage":{usage}}}"#);
    let expected = "in 40 cached 8 audio_in 30 out 9 audio_out 6";
    assert_eq!(stream(Chat, &[&last, "[DONE]"]), format!("whole({expected}) | done |"));
    let body = format!(
        r#"{{"choices":[{{"index":0,"message":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
    );
    assert_eq!(whole(Chat, &body), format!("text0/1 stop0 choice0({expected}) |"));
    assert_eq!(
        stream(
            Responses,
            &[
                r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":8,"audio_tokens":30},"output_tokens":9}}}"#
            ]
        ),
        "stop0 choice(in 40 cached 8 audio_in 30 out 9) done |"
    );
    assert_eq!(
        stream(
            Transcription,
            &[
                r#"{"type":"transcript.text.done","text":"a","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":0,"audio_tokens":14},"output_tokens":4}}"#
            ]
        ),
        "stop0 whole(in 14 audio_in 14 out 4) done |"
    );
}

#[test]
fn gemini_modalities_may_come_in_any_order() {
    let frame = |parts: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":40,"candidatesTokenCount":9,"promptTokensDetails":[{parts}]}}}}"#
        )
    };
    for (parts, audio) in [
        (r#"{"modality":"TEXT","tokenCount":10},{"modality":"AUDIO","tokenCount":30}"#, " audio_in 30"),
        (r#"{"tokenCount":30,"modality":"AUDIO"},{"tokenCount":10,"modality":"TEXT"}"#, " audio_in 30"),
        (r#"{"modality":"TEXT","tokenCount":10},{"modality":"IMAGE","tokenCount":30}"#, " image_in 30"),
        (r#"{"modality":"AUDIO"},{"tokenCount":30},7"#, ""),
    ] {
        let expected = format!("text0/1 stop0 whole(in 40{audio} out 9) |");
        assert_eq!(stream(Gemini, &[&frame(parts)]), expected, "{parts}");
        assert_eq!(whole(Gemini, &frame(parts)), expected, "{parts}");
    }
}
