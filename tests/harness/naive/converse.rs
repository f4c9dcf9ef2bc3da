//! Bedrock's Converse: an event of a stream has members of its own, and an unstreamed answer has the members of several.

use scan::{Count, Counts, Scope};
use serde_json::Value;

use super::counts;
use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_word, says_error};
use super::words::{self, CONVERSE};

/// The facts of a frame.
pub(crate) fn facts(frame: &Value) -> Option<FrameFacts> {
    if says_error(frame) {
        return Some(FrameFacts::lead(Lead::Error));
    }
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let parts = ["role", "start", "delta", "output"].map(|name| frame.get(name).is_some());
    if parts.into_iter().filter(|is_present| *is_present).count() > 1 {
        return None;
    }
    let at = |place: &str| chars(frame.pointer(place));
    let content = || each(frame.pointer("/output/message/content"));
    let of_content = |place: &str| content().map(|part| chars(part.pointer(place))).sum::<u32>();
    let lengths = [
        at("/delta/reasoningContent/text") + of_content("/reasoningContent/reasoningText/text"),
        at("/delta/text") + of_content("/text"),
        0,
        at("/start/toolUse/name") + at("/delta/toolUse/input") + of_content("/toolUse/name"),
        0,
    ];
    let finish = words::finish(frame.get("stopReason"), CONVERSE)?;
    let mut choice = Choice::new(0, None, lengths, is_word(frame.get("role")), finish);
    let counts = counts(frame)?;
    let cached = counts.or_zero(Count::InputCached) + counts.or_zero(Count::InputCacheWrite);
    let input = counts.get(Count::Input).map(|n| n + cached);
    choice.count_as(Scope::Choice(Some(0)), counts.with(Count::Input, input));
    Some(FrameFacts { each_counts: true, ..FrameFacts::choice(choice) })
}

/// The counts as they stand.
fn counts(frame: &Value) -> Option<Counts> {
    let hours = each(frame.pointer("/usage/cacheDetails")).filter(|part| part["ttl"] == "1h");
    let written = hours.filter_map(|part| part["inputTokens"].as_u64()).last();
    let counts = counts::at(
        frame,
        &[
            ("/usage/inputTokens", Count::Input),
            ("/usage/outputTokens", Count::Output),
            ("/usage/totalTokens", Count::Total),
            ("/usage/cacheReadInputTokens", Count::InputCached),
            ("/usage/cacheWriteInputTokens", Count::InputCacheWrite),
        ],
    )?;
    Some(if written.is_some() { counts.with(Count::InputCacheWrite1h, written) } else { counts })
}
