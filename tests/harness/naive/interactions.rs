//! Gemini's interactions: the frame's `event_type` determines its meaning; the last one has the interaction, with its
//! counts and its status.

use scan::{Counts, Finish, Scope, Usage};
use serde_json::Value;

use super::Frame;
use super::facts::{Chars, Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_word, says_error};
use super::gemini::{INTERACTIONS, counts};
use super::memory::Memory;

/// The facts of a frame.
pub(crate) fn facts(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let kind = frame.get("event_type").and_then(Value::as_str).unwrap_or_default();
    let error = says_error(frame) || kind == "error";
    if outside.unstreamed {
        return if is_word(frame.get("event_type")) { None } else { Some(whole(frame)?.or_error(error)) };
    }
    let facts = match kind {
        "" => FrameFacts::lead(Lead::Other),
        "interaction.created" | "interaction.start" => FrameFacts::lead(Lead::Progress),
        "interaction.completed" | "interaction.complete" => last(frame, memory)?,
        "step.delta" | "content.delta" => FrameFacts::choice(Choice::new(0, None, delta(frame), false, None)),
        _ => FrameFacts::lead(Lead::Meta),
    };
    Some(facts.or_error(error))
}

fn delta(frame: &Value) -> Chars {
    let at = |path: &str| chars(frame.pointer(path));
    let call = at("/delta/name") + at("/delta/arguments");
    [at("/delta/content/text"), at("/delta/text"), 0, call, at("/delta/data")]
}

/// The end of a stream.
fn last(frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    let number = memory.ended;
    memory.ended += 1;
    let nothing = Value::Null;
    let interaction = frame.get("interaction").unwrap_or(&nothing);
    let (lead, finish) = outcome(interaction);
    let finish = match (lead, finish) {
        (Some(Lead::Error), _) => None,
        (_, finish) => Some(finish.unwrap_or(Finish::Stop)),
    };
    Some(FrameFacts {
        lead: lead.filter(|lead| *lead == Lead::Error),
        choices: finish.map(|reason| Choice::finish(number, reason)).into_iter().collect(),
        usage: usage(interaction)?.map(|counts| Usage { scope: Scope::Choice(None), counts }),
        done: true,
        ..FrameFacts::default()
    })
}

/// An unstreamed interaction.
fn whole(frame: &Value) -> Option<FrameFacts> {
    if frame.get("steps").is_some() && frame.get("outputs").is_some() {
        return None;
    }
    let mut lengths: Chars = [0; 5];
    for step in each(frame.get("steps")) {
        lengths[0] += each(step.get("summary")).map(|part| chars(part.get("text"))).sum::<u32>();
        lengths[1] += each(step.get("content")).map(|part| chars(part.get("text"))).sum::<u32>();
        lengths[3] += chars(step.get("name"));
    }
    for output in each(frame.get("outputs")) {
        lengths[0] += each(output.get("summary")).map(|part| chars(part.get("text"))).sum::<u32>();
        lengths[1] += chars(output.get("text"));
        lengths[3] += chars(output.get("name"));
    }
    let (lead, finish) = outcome(frame);
    if lead == Some(Lead::Progress) {
        return Some(FrameFacts::lead(Lead::Progress));
    }
    let content = frame.get("steps").or(frame.get("outputs"));
    let has_content = content.is_some_and(|content| content.is_array() || content.is_object());
    let silent = (says_error(frame) || lead == Some(Lead::Error)) && lengths == [0; 5];
    let answers = has_content && !silent || finish.is_some();
    let usage = usage(frame)?.map(|counts| Usage { scope: Scope::Whole, counts });
    let nothing = !answers && usage.is_none();
    Some(FrameFacts {
        lead: lead.or(nothing.then_some(Lead::Other)),
        choices: answers.then(|| Choice::new(0, None, lengths, false, finish)).into_iter().collect(),
        usage,
        ..FrameFacts::default()
    })
}

/// The event and the reason of a status.
fn outcome(interaction: &Value) -> (Option<Lead>, Option<Finish>) {
    match interaction.get("status").and_then(Value::as_str) {
        Some("completed") => (None, Some(Finish::Stop)),
        Some("incomplete" | "budget_exceeded" | "requires_continuation") => (None, Some(Finish::Length)),
        Some("requires_action") => (None, Some(Finish::ToolCalls)),
        Some("cancelled") => (None, Some(Finish::Abort)),
        Some("failed") => (Some(Lead::Error), None),
        Some("queued" | "in_progress") => (Some(Lead::Progress), None),
        _ => (None, None),
    }
}

fn usage(interaction: &Value) -> Option<Option<Counts>> {
    let Some(usage) = interaction.get("usage").filter(|usage| usage.is_object()) else { return Some(None) };
    let counts = counts(usage, &INTERACTIONS)?;
    Some((!counts.is_empty()).then_some(counts))
}
