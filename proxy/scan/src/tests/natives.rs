//! The dialects whose frame is an answer: TGI, SGLang, LMDeploy, Ollama, Triton, llama.cpp.

use super::{lines, scan_every_way, short, stream, whole};
use crate::Dialect::{
    LlamacppCompletion as Llamacpp, Lmdeploy, OllamaChat, OllamaGenerate, Sglang, Tgi, Triton,
};
use crate::Framing::Ndjson;

#[test]
fn tgi_frames_yield_their_events() {
    let cases = [
        (
            r#"{"index":3,"token":{"id":311,"text":" ox","logprob":-0.2,"special":false},"generated_text":null,"details":null}"#,
            "text0/3=1 running0(out 3) |",
        ),
        (
            r#"{"index":4,"token":{"id":9,"text":"","special":false},"generated_text":null}"#,
            "empty0=1 running0(out 4) |",
        ),
        (
            r#"{"index":4,"token":{"id":9,"text":"</s>","special":true},"generated_text":null}"#,
            "text0/4=1 running0(out 4) |",
        ),
        (
            r#"{"index":5,"token":{"text":" ox"},"generated_text":"A red ox","details":{"finish_reason":"length","generated_tokens":5,"seed":null,"input_length":7}}"#,
            "text0/3=1 length0 choice0(in 7 out 5) |",
        ),
        (
            r#"{"index":5,"token":{"text":" ox"},"generated_text":"A red ox","details":null}"#,
            "text0/3=1 stop0 running0(out 5) |",
        ),
        (r#"{"error":"Request failed","error_type":"generation"}"#, "error |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Tgi, &[frame]), expected, "{frame}");
    }
}

#[test]
fn unstreamed_tgi_answers_yield_their_events() {
    let cases = [
        (r#"{"generated_text":"A red ox"}"#, "text0/8 stop0 |"),
        (r#"[{"generated_text":"A red ox"}]"#, "text0/8 stop0 |"),
        (r#"[{"generated_text":"A"},{"generated_text":"ox"}]"#, "text0/1 stop0 text1/2 stop1 |"),
        (
            r#"{"generated_text":"A ox","details":{"finish_reason":"eos_token","generated_tokens":2,"prefill":[{"id":1},{"id":2},{"id":3}],"tokens":[{"id":8,"text":"A"},{"id":9,"text":" ox"}],"best_of_sequences":[{"finish_reason":"length","generated_tokens":5},{"generated_tokens":7}]}}"#,
            "text0/4=2 stop0 choice0(in 3 out 14) |",
        ),
        (
            r#"{"generated_text":"A","details":{"finish_reason":"length","generated_tokens":1,"prefill":[],"tokens":[{"id":8}]}}"#,
            "text0/1=1 length0 choice0(out 1) |",
        ),
        (r#"{"error":"x","error_type":"overloaded"}"#, "error |"),
    ];
    for (body, expected) in cases {
        assert_eq!(whole(Tgi, body), expected, "{body}");
    }
}

fn generated(index: u32, text: &str, ids: &str, total: u32) -> String {
    format!(
        r#"{{"index":{index},"text":"{text}","output_ids":[{ids}],"meta_info":{{"id":"r","finish_reason":null,"prompt_tokens":5,"completion_tokens":{total},"cached_tokens":1}}}}"#
    )
}

#[test]
fn sglang_is_cumulative_and_lmdeploy_is_not() {
    let repeats = [generated(0, "A", "8", 1), generated(0, "A r", "8,9", 2), generated(0, "A r", "8,9,7", 3)];
    let repeats: Vec<&str> = repeats.iter().map(String::as_str).collect();
    assert_eq!(
        stream(Sglang, &repeats),
        "text0/1=1 running0(in 5 cached 1 out 1) | text0/2=1 running0(in 5 cached 1 out 2) | \
         empty0=1 running0(in 5 cached 1 out 3) |"
    );
    let adds = [generated(0, "A", "8", 1), generated(0, " r", "9", 2), generated(0, "", "7", 3)];
    let adds: Vec<&str> = adds.iter().map(String::as_str).collect();
    let expected = "text0/1=1 running0(in 5 cached 1 out 1) | text0/2=1 running0(in 5 cached 1 out 2) | \
                empty0=1 running0(in 5 cached 1 out 3) |";
    assert_eq!(stream(Lmdeploy, &adds), expected);
    // An SGLang configured to stream increments is detected.
    assert_eq!(stream(Sglang, &adds), expected);
}

#[test]
fn sglang_answers_are_separate_and_never_shrink() {
    let frames = [
        generated(1, "abc", "1,2,3", 3),
        generated(0, "x", "1", 1),
        generated(1, "ab", "1,2,3,4", 4),
        generated(1, "abcd", "1,2,3,4,5", 5),
        generated(9, "abc", "1,2,3", 3),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let events = stream(Sglang, &frames);
    let deltas: Vec<&str> = events.split(" | ").filter_map(|frame| frame.split(' ').next()).collect();
    assert_eq!(deltas, ["text1/3=3", "text0/1=1", "empty1=1", "text1/1=1", "text9/3"]);
}

#[test]
fn sglang_finishes_yield_their_events() {
    let last = r#"{"text":"A","output_ids":[8],"meta_info":{"finish_reason":{"type":"length","length":3},"prompt_tokens":5,"completion_tokens":1,"reasoning_tokens":0,"e2e_latency":0.4}}"#;
    assert_eq!(
        stream(Sglang, &[last, "[DONE]"]),
        "text0/1=1 length0 choice0(in 5 out 1 reasoning 0) | done |"
    );
    for (reason, expected) in [
        (r#"{"type":"stop","matched":2}"#, "stop0 |"),
        (r#"{"type":"abort","message":"type","status_code":500}"#, "abort0 |"),
        (r#""stop""#, "stop0 |"),
        ("null", "empty0 |"),
    ] {
        let frame = format!(r#"{{"text":"","meta_info":{{"finish_reason":{reason}}}}}"#);
        for dialect in [Sglang, Lmdeploy] {
            assert_eq!(stream(dialect, &[&frame]), expected, "{dialect:?} {reason}");
        }
    }
    for error in [r#"{"error":{"message":"x"}}"#, r#"{"object":"error","message":"x","code":400}"#] {
        assert_eq!(stream(Sglang, &[error]), "error |", "{error}");
    }
    assert_eq!(
        whole(Sglang, &format!("[{last},{last}]")),
        "text0/1=1 length0 choice0(in 5 out 1 reasoning 0) text1/1=1 length1 choice1(in 5 out 1 reasoning 0) |"
    );
}

#[test]
fn ollama_lines_yield_their_events() {
    let cases = [
        (r#"{"model":"m","message":{"role":"assistant","content":" ox"},"done":false}"#, "text0/3 |"),
        (r#"{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#, "reasoning0/2 |"),
        (
            r#"{"message":{"content":"a","thinking":"hm"},"done":false,"logprobs":[{},{}]}"#,
            "reasoning0/2=2 text0/1=0 |",
        ),
        (r#"{"message":{"content":""},"done":false}"#, "empty0 |"),
        (
            r#"{"message":{"content":""},"done":true,"done_reason":"stop","total_duration":9,"load_duration":100,"prompt_eval_count":5,"prompt_eval_duration":300,"eval_count":3,"eval_duration":500}"#,
            "stop0 choice0(in 5 out 3) times(queue 100 prefill 300 decode 500) |",
        ),
        (r#"{"message":{"content":"all"},"done":true,"eval_count":3}"#, "text0/3 stop0 choice0(out 3) |"),
        (r#"{"message":{"content":""},"done":true,"done_reason":"length"}"#, "length0 |"),
        (r#"{"message":{"content":""},"done":true,"done_reason":"load"}"#, "meta ended0 |"),
        (r#"{"error":"llama runner process no longer running"}"#, "error |"),
    ];
    for (line, expected) in cases {
        assert_eq!(lines(OllamaChat, &[line]), expected, "{line}");
        let generate = line
            .replace(r#""message":{"role":"assistant","content":"#, r#""response":"#)
            .replace(r#""message":{"content":"#, r#""response":"#)
            .replace("},\"done\"", ",\"done\"");
        assert_eq!(lines(OllamaGenerate, &[&generate]), expected, "{generate}");
    }
    let body = r#"{"model":"m","response":"all","done":true,"done_reason":"stop","context":[1,2],"prompt_eval_count":5,"eval_count":3}"#;
    assert_eq!(whole(OllamaGenerate, body), "text0/3 stop0 choice0(in 5 out 3) |");
}

#[test]
fn the_last_line_needs_no_line_end() {
    let body = "{\"response\":\"a\",\"done\":false}\n\n{\"response\":\"\",\"done\":true,\"eval_count\":3}";
    let seen = scan_every_way(OllamaGenerate, Ndjson, body);
    assert_eq!(short(&seen), "text0/1 | stop0 choice0(out 3) |");
    assert!(seen.tail.is_some_and(|tail| tail.whole && !tail.torn));
}

#[test]
fn triton_frames_yield_their_events() {
    let cases = [
        (r#"{"model_name":"m","model_version":"1","text_output":" ox","sequence_length":[7]}"#, "text0/3 |"),
        (r#"{"model_name":"m","text_output":["A"," ox"]}"#, "text0/4 |"),
        (r#"{"model_name":"m","text_output":""}"#, "empty0 |"),
        (r#"{"error":"text"}"#, "error |"),
    ];
    for (frame, expected) in cases {
        assert_eq!(stream(Triton, &[frame]), expected, "{frame}");
        assert_eq!(whole(Triton, frame), expected, "{frame}");
    }
    assert_eq!(scan_every_way(Triton, Ndjson, cases[0].0).model, "m");
}

#[test]
fn llamacpp_times_are_reported_at_the_end() {
    let running = r#"{"index":0,"content":" elm","tokens":[412],"stop":false,"tokens_predicted":4,"tokens_evaluated":7,"timings":{"prompt_ms":1.5,"predicted_ms":2.5}}"#;
    let last = r#"{"index":0,"content":"","tokens":[],"stop":true,"stop_type":"limit","tokens_predicted":20,"tokens_evaluated":7,"generation_settings":{"stop":[]},"timings":{"cache_n":6,"prompt_ms":1.5,"predicted_ms":2.5}}"#;
    assert_eq!(
        stream(Llamacpp, &[running, "null", last]),
        "text0/4=1 running0(in 7 out 4) | ping | \
         length0 choice0(in 7 cached 6 out 20) times(prefill 1500000 decode 2500000) |"
    );
}
