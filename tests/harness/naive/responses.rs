//! OpenAI's Responses: the frame's `type` determines its meaning; the last one repeats the whole answer. llama.cpp
//! gives several answers: in parallel in a stream, or in one array.

use scan::{Finish, Scope, Usage};
use serde_json::Value;

use super::facts::{Chars, Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_error, is_word, len, says_error};
use super::memory::Memory;
use super::words::{self, RESPONSES};
use super::{Frame, counts, times};

/// The events of a frame; an array holds several.
pub(crate) fn facts(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<Vec<FrameFacts>> {
    let Value::Array(frames) = frame else { return Some(vec![one(outside, frame, memory)?]) };
    let objects: Vec<&Value> = frames.iter().filter(|frame| frame.is_object()).collect();
    match objects.is_empty() {
        true => Some(vec![FrameFacts::lead(Lead::Other)]),
        // No server sends it in a stream of events, nor an array of errors.
        false if !outside.unstreamed || !outside.whole || objects.iter().any(|frame| is_error(frame)) => None,
        false => objects.into_iter().map(|frame| element(outside, frame, memory)).collect(),
    }
}

/// One of several answers, counted alone.
fn element(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    let mut facts = whole(outside, frame)?;
    if let Some(usage) = &mut facts.usage {
        usage.scope = Scope::Choice(None);
    }
    for choice in &mut facts.choices {
        choice.number(memory.ended);
        memory.ended += 1;
    }
    Some(facts)
}

fn one(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
    let error = is_error(frame) || kind == "error";
    let facts = if outside.unstreamed || kind.is_empty() && is_response(frame) {
        whole(outside, frame)?
    } else if kind.is_empty() {
        return error.then(|| FrameFacts::lead(Lead::Error));
    } else {
        streamed(frame, kind, memory)?
    };
    Some(facts.or_error(error))
}

fn is_response(frame: &Value) -> bool {
    frame.get("object").is_some_and(|object| object == "response")
}

fn streamed(frame: &Value, kind: &str, memory: &mut Memory) -> Option<FrameFacts> {
    let name = kind.strip_prefix("response.").unwrap_or("");
    let kind: fn(u32) -> Chars = match name {
        "output_text.delta" => |n| [0, n, 0, 0, 0],
        "refusal.delta" => |n| [0, 0, n, 0, 0],
        "reasoning_text.delta" | "reasoning_summary_text.delta" => |n| [n, 0, 0, 0, 0],
        "function_call_arguments.delta"
        | "custom_tool_call_input.delta"
        | "mcp_call_arguments.delta"
        | "code_interpreter_call_code.delta" => |n| [0, 0, 0, n, 0],
        "audio.delta" | "audio.transcript.delta" => |n| [0, 0, 0, 0, n],
        "completed" | "incomplete" | "failed" | "cancelled" => return last(frame, name, memory),
        "created" => {
            let lead = if memory.begun > 0 { Lead::Begin(memory.begun) } else { Lead::Progress };
            memory.begun += 1;
            return untimed(frame, FrameFacts::lead(lead));
        }
        "queued" | "in_progress" => return untimed(frame, FrameFacts::lead(Lead::Progress)),
        _ => return Some(running(frame, FrameFacts::lead(Lead::Meta), memory)),
    };
    let tokens = len(frame.get("logprobs")).filter(|&n| n > 0);
    let piece = Choice::new(0, tokens, kind(chars(frame.get("delta"))), false, None);
    let mut facts = running(frame, FrameFacts::choice(piece), memory);
    if facts.usage.is_none() && memory.begun < 2 && memory.ended < 1 {
        facts.usage = beside_part(frame)?;
    }
    Some(facts)
}

/// The usage beside a part of the answer.
pub(super) fn beside_part(frame: &Value) -> Option<Option<Usage>> {
    let holder =
        if frame.get("usage").is_some_and(Value::is_object) { Some(frame) } else { frame.get("response") };
    let usage = usage(holder.unwrap_or(&Value::Null))?;
    Some(usage.map(|usage| Usage { scope: Scope::Running(0), ..usage }))
}

/// llama.cpp's `timings` before the end of the only answer are a running count; of several answers, their answer is
/// unknown.
fn running(frame: &Value, facts: FrameFacts, memory: &Memory) -> FrameFacts {
    let is_sole = memory.begun < 2 && memory.ended < 1;
    let timings = frame.get("timings").filter(|timings| is_sole && timings.is_object());
    let counts = timings.and_then(counts::of_timings);
    FrameFacts { usage: counts.map(|counts| Usage { scope: Scope::Running(0), counts }), ..facts }
}

/// Times belong to the end.
fn untimed(frame: &Value, facts: FrameFacts) -> Option<FrameFacts> {
    times::at(frame, times::RESPONSES)?.is_none().then_some(facts)
}

/// The last frame of an answer: its response repeats the answer, with its counts.
fn last(frame: &Value, name: &str, memory: &mut Memory) -> Option<FrameFacts> {
    let number = memory.ended;
    memory.ended += 1;
    let nothing = Value::Null;
    let response = frame.get("response").unwrap_or(&nothing);
    let usage = usage(response)?.map(|usage| Usage { scope: Scope::Choice(None), ..usage });
    if usage.is_none() && frame.pointer("/timings/predicted_n").is_some() {
        return None;
    }
    let reason = reason(response)?;
    let status = response.get("status").and_then(Value::as_str).unwrap_or_default();
    // vLLM ends every stream with this type; the status is in the response.
    let name = match (name, status) {
        ("completed", "failed" | "incomplete" | "cancelled") => status,
        _ => name,
    };
    if name != "failed" && says_error(response) {
        return None;
    }
    let finish = match (name, reason) {
        ("failed", _) => None,
        ("cancelled", _) => Some(Finish::Abort),
        (_, Some(reason)) => Some(reason),
        ("completed", None) => Some(Finish::Stop),
        _ => Some(Finish::Other),
    };
    Some(FrameFacts {
        lead: (name == "failed").then_some(Lead::Error),
        choices: finish.map(|reason| Choice::finish(number, reason)).into_iter().collect(),
        usage,
        server: times::at(frame, times::RESPONSES)?,
        done: memory.ended >= memory.begun,
        ..FrameFacts::default()
    })
}

fn reason(response: &Value) -> Option<Option<Finish>> {
    words::finish(response.pointer("/incomplete_details/reason"), RESPONSES)
}

fn usage(response: &Value) -> Option<Option<Usage>> {
    let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) else { return Some(None) };
    let counts = counts::of_usage(usage)?;
    Some((!counts.is_empty()).then_some(Usage { scope: Scope::Whole, counts }))
}

/// An unstreamed response.
fn whole(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if !is_response(frame) {
        let some =
            ["status", "output", "usage", "incomplete_details"].iter().any(|k| frame.get(*k).is_some());
        let streamed = is_word(frame.get("type")) && frame.get("type").is_some_and(|kind| kind != "error");
        return if some || streamed { None } else { untimed(frame, FrameFacts::lead(Lead::Other)) };
    }
    if outside.unstreamed && is_word(frame.get("type")) {
        return None;
    }
    let mut lengths: Chars = [0; 5];
    for item in each(frame.get("output")) {
        let thought = item.get("type").is_some_and(|kind| kind == "reasoning");
        for part in each(item.get("content")) {
            lengths[if thought { 0 } else { 1 }] += chars(part.get("text"));
            lengths[2] += chars(part.get("refusal"));
        }
        lengths[0] += each(item.get("summary")).map(|part| chars(part.get("text"))).sum::<u32>();
        lengths[3] += chars(item.get("arguments")) + chars(item.get("input"));
    }
    let silent = lengths == [0; 5];
    let usage = usage(frame)?;
    let reason = reason(frame)?;
    let (lead, finish) = match frame.get("status").and_then(Value::as_str) {
        Some("failed") => (Some(Lead::Error), None),
        Some("queued" | "in_progress") => (Some(Lead::Progress), None),
        Some("cancelled") => (None, Some(Finish::Abort)),
        Some("completed") => (None, Some(reason.unwrap_or(Finish::Stop))),
        Some("incomplete") => (None, Some(reason.unwrap_or(Finish::Other))),
        _ => return None,
    };
    if lead == Some(Lead::Progress) {
        return untimed(frame, FrameFacts::lead(Lead::Progress));
    }
    let answers = finish.is_some() || !silent;
    let choice = answers.then(|| Choice::new(0, None, lengths, false, finish));
    let facts = FrameFacts { lead, choices: choice.into_iter().collect(), usage, ..FrameFacts::default() };
    Some(FrameFacts { server: times::at(frame, times::RESPONSES)?, ..facts })
}
