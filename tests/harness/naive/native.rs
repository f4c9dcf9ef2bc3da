//! llama.cpp's own dialect: the frame is the choice, and its own running count.

use scan::{Counts, Finish};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, says_error};
use super::words::{self, OPENAI};
use super::{Frame, counts, openai, times};

/// The facts of a frame.
pub(crate) fn facts(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    let list = match frame {
        Value::Object(_) => std::slice::from_ref(frame),
        Value::Array(list) => &list[..],
        _ => &[],
    };
    let mut facts = FrameFacts { each_counts: true, ..FrameFacts::default() };
    // If the frame is the choice, it may be an error instead.
    let objects = list.iter().filter(|value| value.is_object() && !says_error(value));
    for (place, value) in objects.enumerate() {
        let index = counts::index(value).unwrap_or(u32::try_from(place).ok()?);
        let tokens = openai::tokens(value, &["/tokens"], &["/completion_probabilities"])?;
        let stopped = value.get("stop") == Some(&Value::Bool(true));
        let finish = match stopped {
            true => Some(words::finish(value.get("stop_type"), OPENAI)?.unwrap_or(Finish::Stop)),
            false => None,
        };
        let text = chars(value.get("content"));
        let mut choice = Choice::new(index, tokens, [0, text, 0, 0, 0], false, finish);
        choice.count(outside, counts::of_native(value)?.unwrap_or(Counts::default()));
        facts.choices.push(choice);
        // In an array they belong to one answer each, and before the end they are not final.
        if frame.is_object() {
            facts.server = times::at(value, times::NATIVE)?.filter(|_| stopped || outside.unstreamed);
        }
    }
    if list.iter().any(says_error) {
        facts.lead = Some(Lead::Error);
    } else if frame.get("prompt_progress").is_some_and(Value::is_object) {
        facts.lead = Some(Lead::Progress);
    }
    Some(facts)
}
