//! The dialects with a list `choices`: chat, completions, and vLLM's token-in, token-out.

use scan::{Counts, Dialect, Finish, Scope, Usage};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_error, is_word};
use super::words::{self, OPENAI};
use super::{Frame, counts, times};

/// The lists of ids of a choice: vLLM's and LMDeploy's.
const IDS: &[&str] = &["/token_ids", "/output_ids"];

/// The facts of a frame.
pub(crate) fn facts(dialect: Dialect, outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
        && each(Some(frame)).any(Value::is_object)
    {
        return None;
    }
    let mut choices = choices(dialect, frame)?;
    let usage = usage(outside, frame, &choices)?;
    let own = usages_of_choices(frame)?;
    // Of a frame with too many events the usage of a choice is passed on before the frame's own is known.
    let events = choices.iter().map(|choice| choice.events.len() + 1).sum::<usize>();
    if events > scan::limits::FRAME_MAX_EVENTS && own.iter().any(|counts| !counts.is_empty()) {
        return None;
    }
    if usage.is_none() {
        for (choice, counts) in choices.iter_mut().zip(own) {
            choice.count(outside, counts);
        }
    }
    let progress = frame.get("prompt_progress").is_some_and(Value::is_object);
    let error =
        is_error(frame) || dialect != Dialect::VllmGenerate && is_swallowed_error(outside, frame, &choices)?;
    let lead = if error {
        Some(Lead::Error)
    } else if progress {
        Some(Lead::Progress)
    } else if choices.is_empty() && usage.is_none() {
        Some(if frame.get("choices").is_some() { Lead::Meta } else { Lead::Other })
    } else {
        None
    };
    let server = times::at(frame, times::OPENAI)?;
    Some(FrameFacts { lead, choices, usage, server, ..FrameFacts::default() })
}

/// The members of a frame that have no usage of a provider.
const OWN_MEMBERS: [&str; 18] = [
    "choices",
    "usage",
    "metadata",
    "sglext",
    "timings",
    "__verbose",
    "metrics",
    "nvext",
    "prompt_progress",
    // Those of other dialects.
    "message",
    "response",
    "interaction",
    "delta",
    "details",
    "meta_info",
    "usageMetadata",
    "token",
    "stop",
];

/// The usage below a member of the provider.
pub(super) fn elsewhere(frame: &Value) -> Option<Counts> {
    let members = frame.as_object().into_iter().flatten();
    let usages = members
        .filter(|(name, _)| !OWN_MEMBERS.contains(&name.as_str()))
        .filter_map(|(_, member)| member.get("usage").filter(|usage| usage.is_object()));
    let counts: Vec<Counts> = usages.map(untimed).collect::<Option<_>>()?;
    let is_undefined = counts.len() > 1
        || counts.len() == 1 && each(frame.get("choices")).any(|choice| choice.get("usage").is_some());
    (!is_undefined).then(|| counts.first().copied().unwrap_or_default())
}

/// The counts of a usage at another place than the frame's own, where no server reports mistral.rs's times.
fn untimed(usage: &Value) -> Option<Counts> {
    let is_timed = usage.get("total_prompt_time_sec").is_some_and(|time| !time.is_null());
    if is_timed { None } else { counts::of_usage(usage) }
}

/// The usage in each choice.
pub(super) fn usages_of_choices(frame: &Value) -> Option<Vec<Counts>> {
    let choices = each(frame.get("choices")).filter(|choice| choice.is_object());
    let usages = choices.map(|choice| match choice.get("usage") {
        Some(usage) if usage.is_object() => untimed(usage),
        _ => Some(Counts::default()),
    });
    usages.collect()
}

/// Ollama decodes its own error as an empty answer without a model.
fn is_swallowed_error(outside: Frame, frame: &Value, choices: &[Choice]) -> Option<bool> {
    let nameless = frame.get("model").is_some_and(|model| model == "");
    if !nameless || choices.is_empty() || choices.iter().any(|choice| choice.finished) {
        return Some(false);
    }
    let hidden = |event: &scan::Event| match event {
        scan::Event::Empty(piece) => piece.tokens.unwrap_or(0) == 0,
        scan::Event::Role { .. } => true,
        _ => false,
    };
    let empty = choices.iter().flat_map(|choice| &choice.events).all(hidden);
    let facts = outside.unstreamed || frame.get("usage").is_some_and(Value::is_object);
    match (empty, facts) {
        (true, true) => None,
        (empty, _) => Some(empty),
    }
}

/// The frame's own usage, which follows its choices.
fn usage(outside: Frame, frame: &Value, choices: &[Choice]) -> Option<Option<Usage>> {
    let one = match choices {
        [choice] => Some(choice.index),
        _ => None,
    };
    let running = choices.last().map(|choice| Scope::Running(choice.index));
    let final_ = outside.unstreamed || choices.iter().any(|choice| choice.finished);
    let timings = frame.get("timings").filter(|timings| timings.is_object());
    let own = match frame.get("usage").filter(|usage| usage.is_object()) {
        Some(usage) => Some(counts::of_usage(usage)?),
        None => None,
    };
    let said = |counts: &Counts| !counts.is_empty();
    let elsewhere = Some(elsewhere(frame)?).filter(said);
    let Some(counts) = own.filter(said).or(elsewhere).or(own) else {
        let counts = timings.and_then(counts::of_timings);
        return Some(
            counts.zip(running).filter(|_| one.is_some()).map(|(counts, scope)| Usage { scope, counts }),
        );
    };
    let scope = match (choices.len(), timings) {
        // llama.cpp, recognised by its timings, counts each choice alone.
        (0, Some(_)) => Scope::Choice(None),
        (_, Some(_)) if final_ => Scope::Choice(one),
        // The others count one choice in that choice's last frame, and all of them in a separate frame or in an
        // unstreamed answer.
        (0, None) => Scope::Whole,
        (1, None) if final_ => Scope::Choice(one),
        (_, None) if final_ => Scope::Whole,
        _ => running?,
    };
    if counts.is_empty() {
        // Seconds of audio are no tokens. Whether timings count instead is undefined.
        return if timings.is_some() { None } else { Some(None) };
    }
    Some(Some(Usage { scope, counts }))
}

fn choices(dialect: Dialect, frame: &Value) -> Option<Vec<Choice>> {
    let objects = each(frame.get("choices")).filter(|choice| choice.is_object());
    let mut choices = Vec::new();
    for (place, value) in objects.enumerate() {
        let index = counts::index(value).unwrap_or(u32::try_from(place).ok()?);
        choices.push(match dialect {
            Dialect::OpenaiChat => chat(index, value)?,
            Dialect::OpenaiCompletions => {
                let tokens = tokens(value, IDS, &["/logprobs/content", "/logprobs/tokens"])?;
                let text = chars(value.get("text"));
                Choice::new(index, tokens, [0, text, 0, 0, 0], false, finish(value)?)
            }
            _ => {
                let tokens = tokens(value, IDS, &["/logprobs/content"])?;
                Choice::new(index, tokens, [0; 5], false, finish(value)?)
            }
        });
    }
    Some(choices)
}

/// An answer of a chat.
pub(crate) fn chat(index: u32, choice: &Value) -> Option<Choice> {
    let object = |name: &str| choice.get(name).filter(|value| !value.is_null());
    let delta = match (object("delta"), object("message")) {
        (Some(_), Some(_)) => return None,
        (delta, message) => delta.or(message).unwrap_or(&Value::Null),
    };
    let text = match delta.get("content") {
        Some(Value::Array(parts)) => parts.iter().map(|part| chars(part.get("text"))).sum(),
        content => chars(content),
    };
    // Two spellings of one field; a server that sends both sends the same text twice.
    let reasoning = chars(delta.get("reasoning")).max(chars(delta.get("reasoning_content")));
    let function = |value: Option<&Value>| {
        let part = |name: &str| chars(value.and_then(|v| v.get(name)));
        part("name") + part("arguments")
    };
    let tool = each(delta.get("tool_calls")).map(|call| function(call.get("function"))).sum::<u32>()
        + function(delta.get("function_call"));
    let tokens = tokens(choice, IDS, &["/logprobs/content"])?;
    let pieces = [reasoning, text, chars(delta.get("refusal")), tool, chars(delta.pointer("/audio/data"))];
    Some(Choice::new(index, tokens, pieces, is_word(delta.get("role")), finish(choice)?))
}

fn finish(choice: &Value) -> Option<Option<Finish>> {
    words::finish(choice.get("finish_reason"), OPENAI)
}

/// Ids if present; else the log-probability entries. Two lists of ids with different lengths are undefined.
pub(crate) fn tokens(choice: &Value, ids: &[&str], logprobs: &[&str]) -> Option<Option<u32>> {
    let entries = |paths: &[&str]| {
        let lists = paths.iter().filter_map(|path| choice.pointer(path)?.as_array());
        lists.map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX)).collect::<Vec<_>>()
    };
    let listed = entries(ids);
    let given = ids.iter().filter(|path| choice.pointer(path).is_some_and(|ids| !ids.is_null())).count();
    if given > 1 && (listed.len() < given || listed.iter().any(|n| *n != listed[0])) {
        return None;
    }
    Some(match (listed.first().copied(), entries(logprobs).into_iter().max()) {
        (None | Some(0), Some(n)) => Some(n),
        (ids, _) => ids,
    })
}
