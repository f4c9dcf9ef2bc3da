//! Constructed streams of every dialect, each with one difficulty, and their meaning by the servers' documentation.
//! Each is read whole, in steps, cut at every byte and with other line ends, and compared with the oracle.

mod native;
mod unstreamed;
mod worded;

use harness::{cuts, naive};
use scan::Dialect::{self, OpenaiChat as Chat, OpenaiCompletions as Text};
use scan::Framing::{self, Sse};

use native::NATIVE;
use unstreamed::UNSTREAMED;
use worded::WORDED;

use crate::short::short;

/// Purpose, dialect and framing, body, events.
pub(crate) type Vector = (&'static str, Dialect, Framing, &'static str, &'static str);

#[test]
fn each_stream_gives_its_events() {
    hold(WORDED.iter().chain(NATIVE).chain(UNSTREAMED));
}

/// Additions to the first dialects.
#[test]
fn additions_to_the_first_dialects_are_read() {
    hold(MORE.iter());
}

/// All vectors of this file.
pub(crate) fn all() -> impl Iterator<Item = &'static Vector> {
    WORDED.iter().chain(NATIVE).chain(UNSTREAMED).chain(MORE)
}

fn hold<'a>(vectors: impl Iterator<Item = &'a Vector>) {
    let mut wrong = Vec::new();
    for (name, dialect, framing, body, expected) in vectors {
        let body = body.as_bytes();
        match naive::read(*dialect, *framing, body) {
            Some(naive) if short(&naive) == *expected => {}
            Some(naive) => {
                wrong.push(format!("{name}: the oracle yields {:?}, not {expected:?}", short(&naive)));
            }
            // The oracle reads strict JSON only.
            None if body.windows(3).any(|window| window == b"NaN") => {}
            None => wrong.push(format!("{name}: the oracle has no result")),
        }
        match cuts::difference(*dialect, *framing, body, 0..body.len() + 1) {
            Ok(seen) if short(&seen) == *expected => {}
            Ok(seen) => wrong.push(format!("{name}: {:?}, not {expected:?}", short(&seen))),
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Too long for a table: the end of a response after three megabytes of it, and of a picture of that size.
#[test]
fn end_is_found_after_three_megabytes() {
    let long = "x".repeat(3 << 20);
    let picture = format!(
        r#"data: {{"type":"response.image_generation_call.partial_image","partial_image_b64":"{long}"}}"#
    );
    let last = format!(
        r#"data: {{"type":"response.completed","response":{{"output":[{{"content":[{{"text":"{long}"}}]}}],"usage":{{"input_tokens":9,"output_tokens":3}}}}}}"#
    );
    let body = format!("{picture}\n\n{last}\n\n");
    for step in [1460, 65_536, usize::MAX] {
        let seen = cuts::in_steps(Dialect::OpenaiResponses, Sse, body.as_bytes(), step);
        assert_eq!(short(&seen), "meta | finish0:stop choice?(in 9 out 3) done |");
    }
}

/// Depth is bounded in every dialect: the frame is skipped, and the next is read.
#[test]
fn a_depth_bomb_is_one_frame_without_meaning() {
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Unknown) {
        let body = format!("data: {{\"type\":{}\n\ndata: [DONE]\n\n", "[".repeat(100_000));
        let seen = cuts::in_steps(dialect, Sse, body.as_bytes(), 1460);
        assert_eq!(short(&seen), "other | done |", "{}", dialect.name());
    }
}

/// Ten thousand frames without content are no text; the count at the end wins.
#[test]
fn frames_without_content_are_no_text() {
    let empty = r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}"#;
    let last = r#"data: {"type":"message_delta","delta":{},"usage":{"output_tokens":7}}"#;
    let body = format!("{}{last}\n\n", format!("{empty}\n\n").repeat(10_000));
    let seen = cuts::in_steps(Dialect::Anthropic, Sse, body.as_bytes(), 1460);
    assert_eq!(short(&seen), format!("{}whole(out 7) |", "empty0 | ".repeat(10_000)));
}

/// Streams of the first dialects.
const MORE: &[Vector] = &[
    (
        "LMDeploy's ids",
        Chat,
        Sse,
        r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":" ox"},"output_ids":[311,7]}]}

"#,
        "text0/3=2 |",
    ),
    (
        "llama.cpp's times",
        Chat,
        Sse,
        r#"data: {"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":7},"timings":{"prompt_n":7,"prompt_ms":0.373,"predicted_n":3,"predicted_ms":2.634}}

"#,
        "choice?(in 7 out 3) server(prefill 373000 decode 2634000) |",
    ),
    (
        "vLLM's times",
        Text,
        Sse,
        r#"data: {"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":7},"metrics":{"time_to_first_token_ms":12.5,"generation_time_ms":100,"queue_time_ms":0,"mean_itl_ms":1.0}}

"#,
        "whole(in 7 out 3) server(queue 0 prefill 12500000 decode 100000000) |",
    ),
    (
        "mistral.rs: times in the usage, one object for all log probabilities",
        Chat,
        Sse,
        r#"data: {"choices":[{"finish_reason":"stop","index":0,"delta":{"content":"a","role":"assistant"},"logprobs":{"token":"a","logprob":-0.5}}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_prompt_time_sec":0.25,"total_completion_time_sec":1.5}}

"#,
        "text0/1 finish0:stop choice0(in 7 out 1) server(prefill 250000000 decode 1500000000) |",
    ),
    (
        "Ollama swallows its error",
        Chat,
        Sse,
        r#"data: {"id":"x","model":"elm:1b","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}

data: {"id":"x","model":"","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

"#,
        "text0/1 | error role0 |",
    ),
    (
        "a usage without counts is none",
        Chat,
        Sse,
        "data: {\"choices\":[],\"usage\":{\"type\":\"duration\",\"seconds\":4}}\n\n",
        "meta |",
    ),
    ("an error of no name, at the body's end", Chat, Sse, "{\"error\":{\"code\":503}}", "error ~"),
];
