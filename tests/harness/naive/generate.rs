//! SGLang's and LMDeploy's `/generate`: the same keys with opposite meanings. SGLang repeats the whole answer in every
//! frame, unless configured otherwise; LMDeploy sends the new part.

use scan::{Count, Dialect, Finish};
use serde_json::Value;

use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, is_error, len, says_error};
use super::memory::{Before, Memory};
use super::words::{self, OPENAI};
use super::{Frame, counts};

/// Choices whose text is tracked; for the others each frame counts alone.
const FOLLOWED: u32 = 8;

/// The facts of a frame.
pub(crate) fn facts(
    dialect: Dialect,
    outside: Frame,
    frame: &Value,
    memory: &mut Memory,
) -> Option<FrameFacts> {
    let mut facts = FrameFacts { each_counts: true, ..FrameFacts::default() };
    let list = match frame {
        Value::Object(_) => std::slice::from_ref(frame),
        Value::Array(list) if outside.unstreamed && list.iter().all(Value::is_object) => &list[..],
        Value::Array(_) => return None,
        _ => &[],
    };
    if frame.is_object() && is_error(frame) || list.iter().any(says_error) {
        facts.lead = Some(Lead::Error);
        return (list.len() == 1).then_some(facts);
    }
    let mut indices = Vec::new();
    for (place, answer) in list.iter().enumerate() {
        let index = match answer.get("index") {
            None | Some(Value::Null) => u32::try_from(place).ok()?,
            Some(_) => counts::index(answer)?,
        };
        if indices.contains(&index) {
            return None;
        }
        indices.push(index);
        facts.choices.push(choice(dialect, outside, index, answer, memory)?);
    }
    Some(facts)
}

fn choice(
    dialect: Dialect,
    outside: Frame,
    index: u32,
    frame: &Value,
    memory: &mut Memory,
) -> Option<Choice> {
    let nothing = Value::Null;
    let info = frame.get("meta_info").unwrap_or(&nothing);
    let (text, ids) = (chars(frame.get("text")), len(frame.get("output_ids")));
    let spoken = frame.get("text").is_some_and(Value::is_string);
    if !spoken && ids.is_none() {
        return None;
    }
    let counted = info.get("completion_tokens").and_then(counts::count);
    if dialect == Dialect::Sglang && !outside.unstreamed {
        memory.incremental |= ids.zip(counted).is_some_and(|(ids, counted)| u64::from(ids) < counted);
    }
    let cumulative = dialect == Dialect::Sglang && !memory.incremental && !outside.unstreamed;
    let (mut new_text, mut new_ids) = (text, ids);
    if cumulative && index < FOLLOWED {
        let before = memory.longest.entry(index).or_default();
        if !spoken && before.chars > 0 || ids.is_none() && before.ids > 0 {
            return None;
        }
        new_text = text.saturating_sub(before.chars);
        new_ids = ids.map(|n| n.saturating_sub(before.ids));
        // A stop string is removed once it is complete: only the text beyond it is new then.
        *before = Before { chars: text.max(before.chars), ids: ids.unwrap_or(0).max(before.ids) };
    } else if cumulative && ids.is_some() {
        return None;
    }
    let finish = finish(dialect, info)?;
    let mut choice = Choice::new(index, new_ids, [0, new_text, 0, 0, 0], false, finish);
    choice.count(
        outside,
        counts::at(
            info,
            &[
                ("/prompt_tokens", Count::Input),
                ("/completion_tokens", Count::Output),
                ("/cached_tokens", Count::InputCached),
                ("/reasoning_tokens", Count::OutputReasoning),
            ],
        )?,
    );
    Some(choice)
}

/// An object with a word in it; LMDeploy also sends the word alone.
fn finish(dialect: Dialect, info: &Value) -> Option<Option<Finish>> {
    match info.get("finish_reason") {
        Some(Value::Object(reason)) => words::finish(reason.get("type"), OPENAI),
        Some(Value::String(_)) if dialect == Dialect::Sglang => None,
        word => words::finish(word, OPENAI),
    }
}
