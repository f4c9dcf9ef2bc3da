//! Anthropic's Messages: the frame's `type` determines its meaning; the prompt is counted at the beginning and the rest
//! at the end, where a later count overwrites the earlier one of its name. `input_tokens` excludes cached tokens, so
//! the three are added.

use scan::{Counts, Scope, Usage};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_word, says_error};
use super::memory::Memory;
use super::words::{self, ANTHROPIC};
use super::{Frame, counts};

const PLACES: [(&str, &str); 7] = [
    ("input", "/input_tokens"),
    ("written", "/cache_creation_input_tokens"),
    ("written_5m", "/cache_creation/ephemeral_5m_input_tokens"),
    ("written_1h", "/cache_creation/ephemeral_1h_input_tokens"),
    ("cached", "/cache_read_input_tokens"),
    ("output", "/output_tokens"),
    ("thought", "/output_tokens_details/thinking_tokens"),
];

/// The names of other dialects for counts.
const OTHER_NAMES: [&str; 2] = ["prompt_tokens", "completion_tokens"];

/// The facts of a frame.
pub(crate) fn facts(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
    let error = says_error(frame) || kind == "error";
    let facts = match kind {
        "message" => whole(frame)?,
        _ if outside.unstreamed => {
            let some = ["content", "stop_reason", "usage"].iter().any(|key| frame.get(*key).is_some());
            if some || !matches!(kind, "" | "error") {
                return None;
            }
            FrameFacts::lead(Lead::Other)
        }
        "message_start" => start(frame, memory)?,
        "content_block_delta" => {
            let part = |name: &str| chars(frame.pointer(&format!("/delta/{name}")));
            let lengths = [part("thinking"), part("text"), 0, part("partial_json"), 0];
            FrameFacts::choice(Choice::new(0, None, lengths, false, None))
        }
        "message_delta" => delta(frame, memory)?,
        "message_stop" => FrameFacts { done: true, ..FrameFacts::default() },
        "ping" => FrameFacts::lead(Lead::Ping),
        "" if !error => return None,
        _ => FrameFacts::lead(Lead::Meta),
    };
    Some(facts.or_error(error))
}

fn start(frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    if std::mem::replace(&mut memory.started, true) {
        return None;
    }
    let mut facts = FrameFacts::choice(Choice::new(0, None, [0; 5], true, None));
    let nothing = Value::Null;
    let usage = frame.pointer("/message/usage").unwrap_or(&nothing);
    if take(usage, memory) > 0 {
        return None;
    }
    // Nothing has been generated yet: an output count here is no count of the answer.
    memory.anthropic.retain(|name, _| !matches!(*name, "output" | "thought"));
    let counts = merged(memory)?;
    facts.usage = counts.input.is_some().then_some(Usage { scope: Scope::Running(0), counts });
    Some(facts)
}

fn delta(frame: &Value, memory: &mut Memory) -> Option<FrameFacts> {
    let finish = words::finish(frame.pointer("/delta/stop_reason"), ANTHROPIC)?;
    let mut facts = FrameFacts {
        choices: finish.map(|reason| Choice::finish(0, reason)).into_iter().collect(),
        ..FrameFacts::default()
    };
    if let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) {
        let says = PLACES.iter().any(|(_, path)| usage.pointer(path).is_some_and(|value| !value.is_null()));
        if !says || counts::is_foreign(usage, &OTHER_NAMES) {
            return None;
        }
        let rejected = take(usage, memory);
        if rejected > 0 && counts::at(usage, &[("/output_tokens", |c| &mut c.output)])?.rejected > 0 {
            return None;
        }
        facts.usage = Some(Usage { scope: Scope::Whole, counts: Counts { rejected, ..merged(memory)? } });
    } else if facts.choices.is_empty() {
        facts.lead = Some(Lead::Meta);
    }
    Some(facts)
}

/// Overwrites the counts that are present; returns the number of rejected ones.
fn take(usage: &Value, memory: &mut Memory) -> u32 {
    let mut rejected = 0;
    for (name, path) in PLACES {
        match usage.pointer(path) {
            None | Some(Value::Null) => {}
            Some(value) => match counts::count(value) {
                Some(n) => drop(memory.anthropic.insert(name, n)),
                None => rejected += 1,
            },
        }
    }
    let own = |path: &str| usage.pointer(path).and_then(counts::count);
    let five_minutes = own("/cache_creation/ephemeral_5m_input_tokens");
    if let (None, Some(five_minutes)) = (own("/cache_creation_input_tokens"), five_minutes) {
        let hour = own("/cache_creation/ephemeral_1h_input_tokens").unwrap_or(0);
        memory.anthropic.insert("written", five_minutes + hour);
    }
    rejected
}

/// The counts so far. `None` if their sum exceeds a count.
fn merged(memory: &Memory) -> Option<Counts> {
    let count = |name: &str| memory.anthropic.get(name).copied();
    let (cached, written, hour) = (count("cached"), count("written"), count("written_1h"));
    let input = count("input").map(|n| n + cached.unwrap_or(0) + written.or(hour).unwrap_or(0));
    input.is_none_or(|n| n <= 1 << 53).then_some(Counts {
        input,
        input_cached: cached,
        input_cache_write: written,
        input_cache_write_1h: hour,
        output: count("output"),
        output_reasoning: count("thought"),
        ..Counts::default()
    })
}

/// An unstreamed message.
fn whole(frame: &Value) -> Option<FrameFacts> {
    let sum = |name: &str| each(frame.get("content")).map(|block| chars(block.get(name))).sum();
    let finish = words::finish(frame.get("stop_reason"), ANTHROPIC)?;
    let lengths = [sum("thinking"), sum("text"), 0, sum("name"), 0];
    if lengths == [0; 5] && finish.is_none() {
        return None;
    }
    let mut facts = FrameFacts::choice(Choice::new(0, None, lengths, false, finish));
    if let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) {
        if counts::is_foreign(usage, &OTHER_NAMES) {
            return None;
        }
        let mut own = Memory::default();
        let rejected = take(usage, &mut own);
        let counts = Counts { rejected, ..merged(&own)? };
        facts.usage = (counts != Counts::default()).then_some(Usage { scope: Scope::Whole, counts });
    }
    // In a stream it would be an ordinary frame; no server sends that.
    (is_word(frame.get("type")) && !says_error(frame)).then_some(facts)
}
