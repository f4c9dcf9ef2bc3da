//! Anthropic's Messages: the frame's `type` determines its meaning; the prompt is counted at the beginning and the rest
//! at the end, where a later count overwrites the earlier one of its name. `input_tokens` excludes cached tokens, so
//! the three are added.

use scan::{Count, Counts, Scope, Usage};
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
            let mut facts = FrameFacts::choice(Choice::new(0, None, lengths, false, None));
            facts.usage = running(frame, memory)?;
            facts
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
    memory.anthropic.clear();
    if take(usage, memory) > 0 {
        return None;
    }
    // Nothing has been generated yet: an output count here is no count of the answer.
    memory.anthropic.retain(|name, _| !matches!(*name, "output" | "thought"));
    let counts = merged(memory)?;
    facts.usage = counts.get(Count::Input).is_some().then_some(Usage { scope: Scope::Running(0), counts });
    Some(facts)
}

/// Dynamo's usage beside a part of the answer.
fn running(frame: &Value, memory: &Memory) -> Option<Option<Usage>> {
    let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) else { return Some(None) };
    if counts::is_foreign(usage, &OTHER_NAMES) {
        return None;
    }
    let mut all = Memory { anthropic: memory.anthropic.clone(), ..Memory::default() };
    let rejected = take(usage, &mut all);
    let says = PLACES.iter().any(|(_, path)| usage.pointer(path).is_some_and(|value| !value.is_null()));
    let counts = merged(&all)?.with_rejected(rejected);
    Some(says.then_some(Usage { scope: Scope::Running(0), counts }))
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
        if rejected > 0 && counts::at(usage, &[("/output_tokens", Count::Output)])?.rejected > 0 {
            return None;
        }
        facts.usage = Some(Usage { scope: Scope::Whole, counts: merged(memory)?.with_rejected(rejected) });
    } else if facts.choices.is_empty() {
        facts.lead = Some(Lead::Meta);
    }
    Some(facts)
}

/// Overwrites the counts that are present; returns the number of rejected ones. Zeros are no counts where an earlier
/// frame has some, unless some other count of the prompt is higher than before.
fn take(usage: &Value, memory: &mut Memory) -> u32 {
    let mut rejected = 0;
    let before = memory.anthropic.clone();
    for (name, path) in PLACES {
        match usage.pointer(path) {
            None | Some(Value::Null) => {}
            Some(value) => match counts::stated(value) {
                Some(n) => drop(memory.anthropic.insert(name, n)),
                None => rejected += 1,
            },
        }
    }
    let own = |path: &str| usage.pointer(path).and_then(counts::stated);
    let five_minutes = own("/cache_creation/ephemeral_5m_input_tokens");
    if let (None, Some(five_minutes)) = (own("/cache_creation_input_tokens"), five_minutes) {
        let hour = own("/cache_creation/ephemeral_1h_input_tokens").unwrap_or(0);
        memory.anthropic.insert("written", five_minutes + hour);
    }
    let is_answer = |name: &str| matches!(name, "output" | "thought");
    let old = |name: &str| before.get(name).copied().unwrap_or(0);
    // The five-minute part stands only for an absent whole, in which it is included above.
    let mut prompt = memory.anthropic.iter().filter(|(name, _)| !is_answer(name) && **name != "written_5m");
    let has_grown = prompt.any(|(name, &n)| n > old(name));
    for (name, n) in &mut memory.anthropic {
        if *n == 0 && (is_answer(name) || !has_grown) {
            *n = old(name);
        }
    }
    rejected
}

/// The counts so far. `None` if their sum exceeds a count.
fn merged(memory: &Memory) -> Option<Counts> {
    let count = |name: &str| memory.anthropic.get(name).copied();
    let (cached, written, hour) = (count("cached"), count("written"), count("written_1h"));
    let input = count("input").map(|n| n + cached.unwrap_or(0) + written.or(hour).unwrap_or(0));
    input.is_none_or(|n| n <= 1 << 53).then_some(Counts::of([
        (Count::Input, input),
        (Count::InputCached, cached),
        (Count::InputCacheWrite, written),
        (Count::InputCacheWrite1h, hour),
        (Count::Output, count("output")),
        (Count::OutputReasoning, count("thought")),
    ]))
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
        let counts = merged(&own)?.with_rejected(rejected);
        facts.usage = (!counts.is_empty()).then_some(Usage { scope: Scope::Whole, counts });
    }
    // In a stream it would be an ordinary frame; no server sends that.
    (is_word(frame.get("type")) && !says_error(frame)).then_some(facts)
}
