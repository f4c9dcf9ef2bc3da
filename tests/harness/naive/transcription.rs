//! Transcriptions: vLLM streams them like a chat, OpenAI and llama.cpp with typed events.

use scan::{Count, Finish, Scope, Usage};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_error};
use super::{Frame, counts, openai, times};

/// The facts of a frame.
pub(crate) fn facts(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
    let error = is_error(frame) || kind == "error";
    let listed = frame.get("choices").is_some();
    // llama.cpp sends these with chats; they were never seen here.
    if ["timings", "prompt_progress"].iter().any(|key| frame.get(*key).is_some_and(|value| !value.is_null()))
    {
        return None;
    }
    let others = [openai::usages_of_choices(frame)?, vec![openai::elsewhere(frame)?]].concat();
    if others.iter().any(|counts| !counts.is_empty()) {
        return None;
    }
    let facts = match (kind, listed) {
        ("", true) if !outside.unstreamed => chat(outside, frame)?,
        // No server has a text in an error.
        ("", false) if outside.unstreamed && error && frame.get("text").is_some() => return None,
        ("", false) if outside.unstreamed => whole(frame)?,
        ("", false) if frame.get("text").is_none() && frame.get("usage").is_none() => {
            FrameFacts::lead(Lead::Other)
        }
        ("transcript.text.delta", false) if !outside.unstreamed => {
            let lengths = [0, chars(frame.get("delta")), 0, 0, 0];
            let usage = usage(frame, Scope::Running(0))?;
            FrameFacts { usage, ..FrameFacts::choice(Choice::new(0, None, lengths, false, None)) }
        }
        ("transcript.text.done", false) if !outside.unstreamed => FrameFacts {
            usage: usage(frame, Scope::Whole)?,
            done: true,
            ..FrameFacts::choice(Choice::finish(0, Finish::Stop))
        },
        (_, false) if !outside.unstreamed && !kind.is_empty() => FrameFacts::lead(Lead::Meta),
        _ => return None,
    };
    let server = times::at(frame, times::OPENAI)?;
    Some(FrameFacts { server, ..facts }.or_error(error))
}

fn chat(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    const KNOWN: [&str; 2] = ["content", "role"];
    let objects = each(frame.get("choices")).filter(|choice| choice.is_object());
    let mut choices = Vec::new();
    for (place, choice) in objects.enumerate() {
        let delta = choice.get("delta").and_then(Value::as_object);
        if choice.get("message").is_some()
            || delta.is_some_and(|delta| delta.keys().any(|key| !KNOWN.contains(&key.as_str())))
            || delta.and_then(|delta| delta.get("content")).is_some_and(Value::is_array)
        {
            return None;
        }
        let index = counts::index(choice).unwrap_or(u32::try_from(place).ok()?);
        choices.push(openai::chat(index, choice)?);
    }
    let finished = outside.unstreamed || choices.iter().any(|choice| choice.finished);
    let scope = match &choices[..] {
        [] => Scope::Whole,
        [one] if finished => Scope::Choice(Some(one.index)),
        _ if finished => Scope::Whole,
        [.., last] => Scope::Running(last.index),
    };
    let usage = usage(frame, scope)?;
    let lead = (choices.is_empty() && usage.is_none()).then_some(Lead::Meta);
    Some(FrameFacts { lead, choices, usage, ..FrameFacts::default() })
}

fn whole(frame: &Value) -> Option<FrameFacts> {
    let Some(text) = frame.get("text").filter(|text| text.is_string()) else {
        let usage = frame.get("usage").is_some();
        return (!usage).then(|| FrameFacts::lead(Lead::Other));
    };
    let choice = Choice::new(0, None, [0, chars(Some(text)), 0, 0, 0], false, None);
    Some(FrameFacts { usage: usage(frame, Scope::Whole)?, ..FrameFacts::choice(choice) })
}

/// Tokens by either server's names; seconds of audio are none.
fn usage(frame: &Value, scope: Scope) -> Option<Option<Usage>> {
    let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) else { return Some(None) };
    let mut counts = counts::of_usage(usage)?;
    // The speaker's words may be in the total only.
    let words = match (counts.get(Count::Input), counts.get(Count::Output), counts.get(Count::Total)) {
        (Some(input), Some(output), Some(total)) if counts.rejected == 0 => {
            total.saturating_sub(input + output)
        }
        _ => 0,
    };
    if words > 0 && counts.get(Count::InputAudio).is_none_or(|audio| audio == words) {
        counts.add(Count::Input, words);
        counts.set(Count::InputAudio, words);
    }
    Some((!counts.is_empty()).then_some(Usage { scope, counts }))
}
