//! A frame of unknown shape: one delta, of which only an error and a usage object are read.

use scan::{Count, Counts, Delta, Event, Scope, Usage};
use serde_json::Value;

use super::Frame;
use super::counts;
use super::facts::{FrameFacts, Lead};
use super::frame::is_error;
use super::memory::Memory;

/// The events of a frame, or `None` if they are undefined.
pub(crate) fn events(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<Vec<Event>> {
    let usage = usage(outside, frame, memory)?;
    if is_error(frame) {
        return FrameFacts { lead: Some(Lead::Error), usage, ..FrameFacts::default() }.events(outside);
    }
    if outside.error {
        return None;
    }
    let delta = match outside {
        Frame { unstreamed: true, .. } if usage.is_none() => Some(Event::Other),
        Frame { unstreamed: false, whole: true, .. } => Some(Event::Text(Delta::default())),
        _ => None,
    };
    Some(delta.into_iter().chain(usage.map(Event::Usage)).collect())
}

/// The usage, merged with the counts of earlier frames.
fn usage(outside: Frame, frame: &Value, memory: &mut Memory) -> Option<Option<Usage>> {
    // A count at a place of one provider only.
    if ["/meta/billed_units", "/meta/tokens", "/Usage", "/Response"]
        .iter()
        .any(|at| frame.pointer(at).is_some())
    {
        return None;
    }
    let mut holders = HOLDERS.iter().filter_map(|holder| Some((frame.pointer(holder.at)?, holder)));
    let mut holder = holders.next();
    // Another member may have one.
    const PLACES: [&str; 6] = ["usage", "response", "message", "result", "interaction", "delta"];
    let is_other = |name: &str| !PLACES.contains(&name);
    let others = frame.as_object().into_iter().flatten().filter(|(name, _)| is_other(name));
    let mut others = others.filter_map(|(_, member)| member.get("usage")).filter(|usage| usage.is_object());
    if let (None, Some(other)) = (holder, others.next()) {
        holder = Some((other, &HOLDERS[0]));
        if others.next().is_some() {
            return None;
        }
    }
    let top = counts::at(frame, &[("/prompt_eval_count", Count::Input), ("/eval_count", Count::Output)])?;
    if holders.next().is_some() || holder.is_some() && !top.is_empty() {
        return None;
    }
    let counts = match holder {
        Some((usage, holder)) if usage.is_object() => holder.counts(usage)?,
        _ => top,
    };
    if counts.is_empty() {
        return Some(None);
    }
    let (mut counts, earlier) = (counts, memory.unknown);
    let (prompt, answer) = (&Count::ALL[..9], &Count::ALL[9..14]);
    let has_grown = prompt.iter().any(|count| counts.or_zero(*count) > earlier.or_zero(*count));
    for (list, zero_stands) in [(prompt, has_grown), (answer, false)] {
        for &count in list {
            let (now, then) = (counts.get(count), earlier.get(count));
            counts.set(
                count,
                match now {
                    Some(0) if !zero_stands => then.or(now),
                    now => now.or(then),
                },
            );
        }
    }
    let scope = if outside.unstreamed { Scope::Whole } else { Scope::Running(0) };
    if !is_error(frame) {
        memory.unknown = counts;
    }
    Some(Some(Usage { scope, counts }))
}

/// A place of a usage object.
struct Holder {
    at: &'static str,
    /// It is the beginning of a message, whose output is an estimate.
    begins: bool,
}

const INPUT: &str = "/input_tokens";
const TOTAL: &str = "/total_tokens";
const READ: &str = "/cache_read_input_tokens";
const WRITTEN: &str = "/cache_creation_input_tokens";
const WRITTEN_5M: &str = "/cache_creation/ephemeral_5m_input_tokens";

const HOLDERS: [Holder; 3] = [
    Holder { at: "/usage", begins: false },
    Holder { at: "/response/usage", begins: false },
    Holder { at: "/message/usage", begins: true },
];

/// The names of Bedrock's Converse, and those of Anthropic for the same counts.
const CONVERSE: [(&str, &str); 5] = [
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("totalTokens", "total_tokens"),
    ("cacheReadInputTokens", "cache_read_input_tokens"),
    ("cacheWriteInputTokens", "cache_creation_input_tokens"),
];

/// A usage with Anthropic's names. `None` if it has counts by both.
fn renamed(usage: &Value) -> Option<Value> {
    let mut usage = usage.clone();
    let members = usage.as_object_mut()?;
    let has_others = members.keys().any(|name| name.contains("_tokens"));
    for (from, to) in CONVERSE {
        if let Some(value) = members.remove(from) {
            if has_others {
                return None;
            }
            members.insert(to.to_owned(), value);
        }
    }
    Some(usage)
}

impl Holder {
    fn counts(&self, usage: &Value) -> Option<Counts> {
        // The numbers that count only together with others.
        let mut usage = renamed(usage)?;
        let mut part = |path: &str| {
            let value = usage.pointer_mut(path).map(Value::take).unwrap_or_default();
            counts::at(&serde_json::json!({ "n": value }), &[("/n", Count::Input)])
        };
        let (input, total, read) = (part(INPUT)?, part(TOTAL)?, part(READ)?);
        let (written, five_minutes) = (part(WRITTEN)?, part(WRITTEN_5M)?);
        if self.begins {
            part("/output_tokens")?;
        }
        if let Some(lifetimes) = usage.get_mut("cache_creation").and_then(Value::as_object_mut) {
            lifetimes.remove("ephemeral_5m_input_tokens");
        }
        let mut counts = counts::of_usage(&usage)?;
        for one in [input, total, read, written, five_minutes] {
            counts.rejected += one.rejected;
        }
        let hour = counts.get(Count::InputCacheWrite1h);
        let both = five_minutes.get(Count::Input).map(|n| n + hour.unwrap_or(0));
        // Of two names, a zero does not count.
        let first =
            |one: Option<u64>, other: Option<u64>| if one == Some(0) { other.or(one) } else { one.or(other) };
        let excluded = written.get(Count::Input).or(both);
        let written = first(excluded, counts.get(Count::InputCacheWrite)).or(hour);
        let excluded = excluded.or(hour).unwrap_or(0) + read.or_zero(Count::Input);
        let (own, other) = (counts.get(Count::Input), input.get(Count::Input).map(|n| n + excluded));
        let all = match (own, input.get(Count::Input), counts.get(Count::Output)) {
            (None, None, None) => total.get(Count::Input),
            (None | Some(0), Some(_), _) => other,
            _ => own,
        };
        counts.set(Count::Input, all);
        counts.set(Count::InputCached, counts.get(Count::InputCached).max(read.get(Count::Input)));
        counts.set(Count::InputCacheWrite, written);
        counts.set(Count::Total, total.get(Count::Input));
        // A rejected number may hide one of another name.
        let is_counted = [Count::Input, Count::Output].iter().any(|count| counts.get(*count).is_some());
        (counts.rejected == 0 || !is_counted).then_some(counts)
    }
}
