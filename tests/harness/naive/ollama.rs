//! Ollama's own dialects, one object a line: the line is the answer, the last one has its counts.

use scan::{Count, Dialect, Finish};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_word, len, says_error};
use super::words::{self, OLLAMA};
use super::{Frame, counts, times};

/// The facts of a frame.
pub(crate) fn facts(dialect: Dialect, outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if says_error(frame) {
        return Some(FrameFacts::lead(Lead::Error));
    }
    let nothing = Value::Null;
    let (speaker, text) = match dialect {
        Dialect::OllamaChat => (frame.get("message").unwrap_or(&nothing), "content"),
        _ => (frame, "response"),
    };
    let done = frame.get("done") == Some(&Value::Bool(true));
    let speaks = speaker.is_object() && speaker.get(text).is_some();
    if !speaks && !done {
        return if frame.is_object() || frame.is_array() {
            None
        } else {
            Some(FrameFacts::lead(Lead::Other))
        };
    }
    let calls = match dialect {
        Dialect::OllamaChat => {
            each(speaker.get("tool_calls")).map(|c| chars(c.pointer("/function/name"))).sum()
        }
        _ => 0,
    };
    let lengths = [chars(speaker.get("thinking")), chars(speaker.get(text)), 0, calls, 0];
    let finish = match done {
        true => Some(words::finish(frame.get("done_reason"), OLLAMA)?.unwrap_or(Finish::Stop)),
        false => None,
    };
    let mut choice = Choice::new(0, len(frame.get("logprobs")), lengths, false, finish);
    let counts = counts::at(frame, &[("/prompt_eval_count", Count::Input), ("/eval_count", Count::Output)])?;
    let server = times::at(frame, times::OLLAMA)?;
    let durations = ["load_duration", "prompt_eval_duration", "eval_duration"];
    let durations = durations.iter().filter_map(|name| frame.get(*name));
    let odd = durations.filter(|value| !value.is_null()).any(|value| counts::count(value).is_none());
    if odd || !done && (!counts.is_empty() || server.is_some()) {
        return None;
    }
    // Ollama omits counts of zero at the end.
    let is_zero = done && !counts.is_empty() && counts.rejected == 0;
    let output = counts.get(Count::Output).or(is_zero.then_some(0));
    choice.count(outside, counts.with(Count::Output, output));
    let mut facts = FrameFacts { server, each_counts: true, ..FrameFacts::choice(choice) };
    let word = frame.get("done_reason").filter(|_| done && is_word(frame.get("done_reason")));
    if word.is_some_and(|word| word == "load" || word == "unload") {
        facts.lead = Some(Lead::Meta);
    }
    Some(facts)
}
