//! Cohere's chat, as vLLM serves it: the frame's `type` determines its meaning; counts are floats.

use scan::{Count, Scope, Usage};
use serde_json::Value;

use super::facts::{Chars, Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_word, says_error};
use super::words::{self, COHERE};
use super::{Frame, counts};

/// The facts of a frame.
pub(crate) fn facts(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
    let error = says_error(frame) || kind == "error";
    if outside.unstreamed {
        return Some(whole(frame)?.or_error(error));
    }
    let [thinking, text, plan, call] = lengths(frame);
    let delta = |lengths: Chars, own: u32| {
        // Text in another type of event does not count.
        let alone = thinking + text + plan + call == own;
        alone.then(|| FrameFacts::choice(Choice::new(0, None, lengths, false, None)))
    };
    let facts = match kind {
        "content-delta" => delta([thinking, text, 0, 0, 0], thinking + text)?,
        "tool-plan-delta" => delta([plan, 0, 0, 0, 0], plan)?,
        "tool-call-start" | "tool-call-delta" => delta([0, 0, 0, call, 0], call)?,
        "" if !error => return None,
        _ if thinking + text + plan + call > 0 => return None,
        "message-start" => FrameFacts::choice(Choice::new(0, None, [0; 5], true, None)),
        "message-end" => end(frame.get("delta"))?,
        _ => FrameFacts::lead(Lead::Meta),
    };
    Some(facts.or_error(error))
}

fn lengths(frame: &Value) -> [u32; 4] {
    let at = |path: &str| chars(frame.pointer(path));
    let call =
        at("/delta/message/tool_calls/function/name") + at("/delta/message/tool_calls/function/arguments");
    [
        at("/delta/message/content/thinking"),
        at("/delta/message/content/text"),
        at("/delta/message/tool_plan"),
        call,
    ]
}

fn end(holder: Option<&Value>) -> Option<FrameFacts> {
    let nothing = Value::Null;
    let holder = holder.unwrap_or(&nothing);
    let finish = words::finish(holder.get("finish_reason"), COHERE)?;
    let usage = usage(holder)?;
    let choices: Vec<Choice> = finish.map(|reason| Choice::finish(0, reason)).into_iter().collect();
    let lead = (choices.is_empty() && usage.is_none()).then_some(Lead::Meta);
    Some(FrameFacts { lead, choices, usage, ..FrameFacts::default() })
}

fn usage(holder: &Value) -> Option<Option<Usage>> {
    let Some(usage) = holder.get("usage").filter(|usage| usage.is_object()) else { return Some(None) };
    if counts::is_foreign(usage, &["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"]) {
        return None;
    }
    let places: &[counts::Place] = &[
        ("/billed_units/input_tokens", Count::Input),
        ("/billed_units/output_tokens", Count::Output),
        ("/tokens/input_tokens", Count::InputUsed),
        ("/tokens/output_tokens", Count::OutputUsed),
        ("/cached_tokens", Count::InputCached),
    ];
    let mut counts = counts::at(usage, places)?;
    // The invoice counts, and what was used beside another number of it.
    let is_billed = |tokens: Option<u64>| tokens.is_some_and(|tokens| tokens > 0);
    if is_billed(counts.get(Count::Input)) && counts.get(Count::InputUsed).is_some() {
        let cached = counts.get(Count::InputCached);
        counts.set(Count::InputCached, cached.min(cached.and(counts.get(Count::Input))));
    }
    for (billed, used) in [(Count::Input, Count::InputUsed), (Count::Output, Count::OutputUsed)] {
        if !is_billed(counts.get(billed)) && counts.get(used).is_some() {
            counts.set(billed, counts.get(used));
        }
        if counts.get(billed) == counts.get(used) {
            counts.set(used, None);
        }
    }
    Some((!counts.is_empty()).then_some(Usage { scope: Scope::Whole, counts }))
}

fn whole(frame: &Value) -> Option<FrameFacts> {
    let nothing = Value::Null;
    let message = frame.get("message").unwrap_or(&nothing);
    let known = ["message", "finish_reason", "usage"].iter().any(|key| frame.get(*key).is_some());
    if !known && !is_word(frame.get("type")) {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let more = message.get("tool_plan").is_some() || message.get("tool_calls").is_some_and(Value::is_array);
    let thinks = each(message.get("content")).any(|part| part.get("thinking").is_some());
    if is_word(frame.get("type")) || !message.is_object() || more || thinks {
        return None;
    }
    let text = each(message.get("content")).map(|part| chars(part.get("text"))).sum();
    let finish = words::finish(frame.get("finish_reason"), COHERE)?;
    if text == 0 && finish.is_none() {
        return None;
    }
    let choice = Choice::new(0, None, [0, text, 0, 0, 0], false, finish);
    Some(FrameFacts { usage: usage(frame)?, ..FrameFacts::choice(choice) })
}
