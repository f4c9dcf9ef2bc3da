//! Streams and answers that users of gateways and clients reported in 2026, with the numbers that are right.

use meter::{Close, Disagreement, Provenance};

use crate::tests::{CHAT, CLEAN, exchanged};

/// The input, output and reasoning of a stream of these frames, their provenance, and a contradiction in them.
fn metered(frames: &[String], close: Close) -> ([u64; 3], Provenance, Option<Disagreement>) {
    let body: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let fields = [("content-type", "text/event-stream")];
    let record = exchanged((CHAT, r#"{"stream":true}"#), &fields, [body.as_bytes()], close).unwrap();
    let tokens = &record.tokens;
    let reasoning = tokens.of(meter::TokenType::OutputReasoning);
    let provenance = tokens.output_provenance;
    ([tokens.input(), tokens.output(), reasoning], provenance, record.disagreement)
}

fn text(usage: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}},"finish_reason":null}}]{usage}}}"#)
}

fn end(usage: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}]{usage}}}"#)
}

fn counts(input: u64, output: u64) -> String {
    format!(
        r#","usage":{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{}}}"#,
        input + output
    )
}

#[test]
fn counts_in_each_frame_are_not_added_up() {
    let done = || "[DONE]".to_owned();
    let running: Vec<String> = (1..=16).map(|output| text(&counts(48, output))).collect();
    let last = end(r#","usage":null"#);
    // cline 12282: the usage of the last frame is null.
    let poolside = [&running[..], &[last, done()]].concat();
    assert_eq!(metered(&poolside, CLEAN), ([48, 16, 0], Provenance::Running, None));
    // pydantic-ai 7914: a frame between has none, and the stream is cut.
    let between = [text(""), text(&counts(10, 4)), text(&counts(10, 5)), text(r#","usage":null"#)];
    assert_eq!(metered(&between, Close::Cut), ([10, 5, 0], Provenance::Running, None));
    // Containarium 788: twice, in the last two frames.
    let twice = [text(""), text(&counts(64, 13)), end(&counts(64, 20)), done()];
    assert_eq!(metered(&twice, CLEAN), ([64, 20, 0], Provenance::Reported, None));
    // openclaude 1444: beside the finish, and again in a frame of its own.
    let again = format!(r#"{{"choices":[]{}}}"#, counts(64, 20));
    let trailing = [text(""), end(&counts(64, 18)), again, done()];
    assert_eq!(metered(&trailing, CLEAN), ([64, 20, 0], Provenance::Reported, None));
    // ATOM 1711: that frame has no list of choices. OmniRoute 9938: its choice is empty.
    for bare in [r#"{"object":"chat.completion.chunk""#, r#"{"choices":[{"delta":{}}]"#] {
        let frames = [text(""), end(""), format!("{bare}{}}}", counts(64, 20)), done()];
        assert_eq!(metered(&frames, CLEAN), ([64, 20, 0], Provenance::Reported, None), "{bare}");
    }
}

#[test]
fn total_decides_where_reasoning_is() {
    for (prompt, answer, reasoning, total, output, disagreement) in [
        // hindsight 3851: beside the answer, inside it, and with a total that is one token off.
        (3110, 673, 909, 4692, 1582, None),
        (3110, 1337, 409, 4447, 1337, None),
        (3110, 673, 909, 4691, 1582, Some(Disagreement::Total)),
        // CLIProxyAPI 5733: no output beside it.
        (21, 0, 60, 81, 60, None),
        // langfuse 14987: more reasoning than output.
        (500, 102, 109, 602, 211, Some(Disagreement::Part)),
    ] {
        let usage = format!(
            r#","usage":{{"prompt_tokens":{prompt},"completion_tokens":{answer},"total_tokens":{total},"completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}"#
        );
        let expected = ([prompt, output, reasoning], Provenance::Reported, disagreement);
        assert_eq!(metered(&[text(""), end(&usage)], CLEAN), expected, "{usage}");
    }
    // Clarifai 978: reasoning that only the total has.
    let hidden = r#","usage":{"prompt_tokens":20,"completion_tokens":424,"total_tokens":1016}"#;
    let expected = ([20, 996, 0], Provenance::Reported, Some(Disagreement::Total));
    assert_eq!(metered(&[text(""), end(hidden)], CLEAN), expected);
}
