//! The meaning of one frame's tree: its dialect and its model.

use scan::{Dialect, Event};
use serde_json::Value;

use super::memory::Memory;
use super::{
    Frame, anthropic, cohere, converse, gemini, generate, interactions, native, ollama, openai, prompts,
    realtime, responses, tgi, transcription, triton, unknown,
};

/// The events of a frame, or `None` if they are undefined.
pub(crate) fn events(
    dialect: Dialect,
    outside: Frame,
    frame: &Value,
    memory: &mut Memory,
) -> Option<Vec<Event>> {
    let facts = match dialect {
        Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::VllmGenerate => {
            openai::facts(dialect, outside, frame)?
        }
        Dialect::LlamacppCompletion => native::facts(outside, frame)?,
        Dialect::OpenaiResponses => {
            let frames =
                responses::facts(outside, frame, memory)?.into_iter().map(|facts| facts.events(outside));
            return frames.collect::<Option<Vec<_>>>().map(|events| events.concat());
        }
        Dialect::Anthropic => anthropic::facts(outside, frame, memory)?,
        Dialect::Tgi => tgi::facts(outside, frame)?,
        Dialect::Sglang | Dialect::Lmdeploy => generate::facts(dialect, outside, frame, memory)?,
        Dialect::OllamaChat | Dialect::OllamaGenerate => ollama::facts(dialect, outside, frame)?,
        Dialect::Triton => triton::facts(outside, frame)?,
        Dialect::Gemini => {
            let frames = gemini::facts(outside, frame)?.into_iter().map(|facts| facts.events(outside));
            return frames.collect::<Option<Vec<_>>>().map(|events| events.concat());
        }
        Dialect::GeminiInteractions => interactions::facts(outside, frame, memory)?,
        Dialect::Cohere => cohere::facts(outside, frame)?,
        Dialect::BedrockConverse => converse::facts(frame)?,
        Dialect::Embeddings | Dialect::Rerank => prompts::facts(frame)?,
        Dialect::Transcription => transcription::facts(outside, frame)?,
        Dialect::Realtime => realtime::facts(outside, frame)?,
        Dialect::Unknown => return unknown::events(outside, frame, memory),
    };
    facts.events(outside)
}

/// The model of a frame, or "". `None` if two places disagree, or if the name is so long that its cut is undefined.
pub(crate) fn model(dialect: Dialect, frame: &Value) -> Option<&str> {
    let places: &[&str] = match dialect {
        Dialect::OpenaiResponses => &["/model", "/response/model"],
        Dialect::Anthropic => &["/model", "/message/model"],
        Dialect::Triton => &["/model_name"],
        Dialect::Realtime => &["/model", "/session/model"],
        Dialect::Gemini => &["/modelVersion"],
        Dialect::GeminiInteractions => &["/model", "/agent", "/interaction/model", "/interaction/agent"],
        // These servers' own formats have no model.
        Dialect::Tgi | Dialect::Sglang | Dialect::Lmdeploy | Dialect::BedrockConverse => &[],
        _ => &["/model"],
    };
    first_word(dialect, frame, places).filter(|name| name.len() <= 40)
}

/// The id of a frame's answer, or "" if there is none or it is too long. `None` as above.
pub(crate) fn id(dialect: Dialect, frame: &Value) -> Option<&str> {
    let places: &[&str] = match dialect {
        Dialect::OpenaiResponses => &["/id", "/response/id"],
        Dialect::Anthropic => &["/id", "/message/id"],
        Dialect::Realtime => &["/response/id"],
        Dialect::VllmGenerate => &["/id", "/request_id"],
        Dialect::Gemini => &["/responseId"],
        Dialect::GeminiInteractions => &["/id", "/interaction/id"],
        Dialect::Sglang | Dialect::Lmdeploy => &["/meta_info/id"],
        Dialect::OpenaiChat
        | Dialect::OpenaiCompletions
        | Dialect::Cohere
        | Dialect::Embeddings
        | Dialect::Rerank
        | Dialect::Transcription
        | Dialect::Unknown => &["/id"],
        _ => &[],
    };
    first_word(dialect, frame, places).map(|id| if id.len() <= 128 { id } else { "" })
}

/// The last service tier of a frame that fits a tier, if there is one. `None` as above.
pub(crate) fn tier(dialect: Dialect, frame: &Value) -> Option<Option<&str>> {
    let places: &[&str] = match dialect {
        Dialect::OpenaiResponses => &["/service_tier", "/response/service_tier"],
        Dialect::GeminiInteractions => &["/service_tier", "/interaction/service_tier"],
        Dialect::Anthropic => &["/message/usage/service_tier", "/usage/service_tier"],
        Dialect::OpenaiChat | Dialect::OpenaiCompletions | Dialect::Transcription | Dialect::VllmGenerate => {
            &["/service_tier"]
        }
        Dialect::Gemini => &["/usageMetadata/serviceTier"],
        Dialect::BedrockConverse => &["/serviceTier/type"],
        Dialect::Unknown => &[
            "/service_tier",
            "/usage/service_tier",
            "/response/service_tier",
            "/message/usage/service_tier",
            "/usageMetadata/serviceTier",
        ],
        _ => &[],
    };
    let is_one = |tier: &&str| {
        (1..=32).contains(&tier.len()) && tier.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let tiers = words(dialect, frame, places)?;
    Some(tiers.into_iter().rfind(is_one))
}

/// The first non-empty word at one of the places.
fn first_word<'v>(dialect: Dialect, frame: &'v Value, places: &[&str]) -> Option<&'v str> {
    Some(words(dialect, frame, places)?.first().copied().unwrap_or_default())
}

/// The non-empty words at the places, one for each answer in the frame. `None` if two places of an answer disagree.
fn words<'v>(dialect: Dialect, frame: &'v Value, places: &[&str]) -> Option<Vec<&'v str>> {
    let holders = match (dialect, frame) {
        (
            Dialect::LlamacppCompletion
            | Dialect::OpenaiResponses
            | Dialect::Gemini
            | Dialect::Sglang
            | Dialect::Lmdeploy,
            Value::Array(list),
        ) => &list[..],
        _ => std::slice::from_ref(frame),
    };
    let mut all = Vec::new();
    for holder in holders {
        let words = places.iter().filter_map(|place| holder.pointer(place)?.as_str());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if words.iter().any(|word| word != &words[0]) {
            return None;
        }
        all.extend(words.first());
    }
    Some(all)
}

/// Returns true if a frame or a choice has an `error` that is set.
pub(crate) fn says_error(value: &Value) -> bool {
    match value.get("error") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

/// As above, but the frame itself may be the error, by its type.
pub(crate) fn is_error(frame: &Value) -> bool {
    says_error(frame) || frame.get("object").is_some_and(|object| object == "error")
}

/// Characters of a string; 0 for any other value.
pub(crate) fn chars(value: Option<&Value>) -> u32 {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Elements of a list, if it is one.
pub(crate) fn len(value: Option<&Value>) -> Option<u32> {
    Some(u32::try_from(value?.as_array()?.len()).unwrap_or(u32::MAX))
}

/// The elements of a list; none for any other value.
pub(crate) fn each(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Returns true for a non-empty word.
pub(crate) fn is_word(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|word| !word.is_empty())
}
