//! Gemini: a list `candidates`, running counts in every frame, thinking marked part by part.

use scan::{Count, Counts, Finish, Scope, Usage};
use serde_json::Value;

use super::facts::{Chars, Choice, FrameFacts, Lead};
use super::frame::{chars, each, is_word, says_error};
use super::words::{self, GEMINI};
use super::{Frame, counts};

/// The facts of a frame; without a stream of events, one array contains its frames.
pub(crate) fn facts(outside: Frame, frame: &Value) -> Option<Vec<FrameFacts>> {
    let Value::Array(frames) = frame else { return Some(vec![one(outside, frame)?]) };
    let streamed = Frame { unstreamed: false, ..outside };
    let frames: Vec<&Value> = frames.iter().filter(|frame| frame.is_object()).collect();
    match frames.is_empty() {
        true => Some(vec![FrameFacts::lead(Lead::Other)]),
        // No server sends it in a stream of events.
        false if !outside.unstreamed => None,
        false => frames.into_iter().map(|frame| one(streamed, frame)).collect(),
    }
}

fn one(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    // Code Assist has frames below it.
    if frame.get("response").is_some_and(|response| !response.is_null()) {
        return None;
    }
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let mut facts = FrameFacts::default();
    let candidates = each(frame.get("candidates")).filter(|candidate| candidate.is_object());
    for (place, candidate) in candidates.enumerate() {
        facts.choices.push(choice(u32::try_from(place).ok()?, candidate)?);
    }
    if facts.choices.is_empty() && is_word(frame.pointer("/promptFeedback/blockReason")) {
        facts.choices.push(Choice::finish(0, Finish::ContentFilter));
    }
    let foreign = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"];
    if frame.get("usage").is_some_and(|usage| counts::is_foreign(usage, &foreign)) {
        return None;
    }
    if let Some(usage) = frame.get("usageMetadata").filter(|usage| usage.is_object()) {
        let whole = outside.unstreamed || facts.choices.iter().any(|choice| choice.finished);
        let scope = if whole { Scope::Whole } else { Scope::Running(0) };
        let counts = counts(usage, &GENERATE)?;
        facts.usage = (!counts.is_empty()).then_some(Usage { scope, counts });
    }
    if says_error(frame) {
        facts.lead = Some(Lead::Error);
    } else if facts.choices.is_empty() && facts.usage.is_none() {
        return None;
    }
    Some(facts)
}

fn choice(place: u32, candidate: &Value) -> Option<Choice> {
    let index = counts::index(candidate).unwrap_or(place);
    let mut lengths: Chars = [0; 5];
    for part in each(candidate.pointer("/content/parts")) {
        let thought = part.get("thought") == Some(&Value::Bool(true));
        lengths[if thought { 0 } else { 1 }] += chars(part.get("text"));
        lengths[3] += chars(part.pointer("/functionCall/name"));
    }
    let finish = words::finish(candidate.get("finishReason"), GEMINI)?;
    Some(Choice::new(index, None, lengths, false, finish))
}

const INPUT: [counts::Place; 3] =
    [("AUDIO", Count::InputAudio), ("IMAGE", Count::InputImage), ("VIDEO", Count::InputVideo)];

const CACHED: [counts::Place; 2] = [("AUDIO", Count::InputCachedAudio), ("IMAGE", Count::InputCachedImage)];

const OUTPUT: [counts::Place; 3] =
    [("AUDIO", Count::OutputAudio), ("IMAGE", Count::OutputImage), ("VIDEO", Count::OutputVideo)];

/// The names of the members of a usage object.
pub(super) struct Names {
    prompt: &'static str,
    tools: &'static str,
    cached: &'static str,
    answer: &'static str,
    thoughts: &'static str,
    total: &'static str,
    /// The lists by modality, of the prompt, its cached part and the answer, and the count in each part.
    lists: [&'static str; 3],
    tokens: &'static str,
}

const GENERATE: Names = Names {
    prompt: "promptTokenCount",
    tools: "toolUsePromptTokenCount",
    cached: "cachedContentTokenCount",
    answer: "candidatesTokenCount",
    thoughts: "thoughtsTokenCount",
    total: "totalTokenCount",
    lists: ["promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails"],
    tokens: "tokenCount",
};

/// Of interactions.
pub(super) const INTERACTIONS: Names = Names {
    prompt: "total_input_tokens",
    tools: "total_tool_use_tokens",
    cached: "total_cached_tokens",
    answer: "total_output_tokens",
    thoughts: "total_thought_tokens",
    total: "total_tokens",
    lists: ["input_tokens_by_modality", "cached_tokens_by_modality", "output_tokens_by_modality"],
    tokens: "tokens",
};

/// Tool use is part of the prompt and thinking part of the answer.
pub(super) fn counts(usage: &Value, names: &Names) -> Option<Counts> {
    let field = |name: &str| -> (Option<u64>, u32) {
        match usage.get(name) {
            None | Some(Value::Null) => (None, 0),
            Some(value) => (counts::stated(value), u32::from(counts::stated(value).is_none())),
        }
    };
    let (prompt, tools) = (field(names.prompt), field(names.tools));
    let (answer, thoughts) = (field(names.answer), field(names.thoughts));
    let (cached, total) = (field(names.cached), field(names.total));
    let mut parts = Counts::default();
    for (list, slots) in names.lists.into_iter().zip([&INPUT[..], &CACHED, &OUTPUT]) {
        for part in each(usage.get(list)).filter(|part| part.is_object()) {
            let number = part.get(names.tokens).filter(|count| !count.is_null());
            let tokens = number.and_then(counts::stated);
            parts.rejected += u32::from(number.is_some() && tokens.is_none());
            let modality = part.get("modality").and_then(Value::as_str).map(str::to_ascii_uppercase);
            if let Some((_, count)) = slots.iter().find(|(name, _)| Some(*name) == modality.as_deref()) {
                parts.set(*count, tokens);
            }
        }
    }
    if prompt.0.is_none() && tools.0.is_some() {
        return None;
    }
    let sum = |a: Option<u64>, b: Option<u64>| {
        (a.is_some() || b.is_some()).then(|| a.unwrap_or(0) + b.unwrap_or(0))
    };
    let (mut input, mut output) = (sum(prompt.0, tools.0), sum(answer.0, thoughts.0));
    // The total may say that one of them is inside, or both.
    let all = [input, output].into_iter().flatten().sum::<u64>();
    let is = |sum: u64| total.0 == Some(sum) && sum < all;
    let [tool, thought] = [tools, thoughts].map(|part| part.0.unwrap_or(0));
    let (fits_tools, fits_thoughts) = (tool <= prompt.0.unwrap_or(0), thought <= answer.0.unwrap_or(0));
    if fits_tools && is(all - tool) {
        input = prompt.0;
    } else if fits_thoughts && is(all - thought) {
        output = answer.0.or(thoughts.0.map(|_| 0));
    } else if fits_tools && fits_thoughts && is(all - tool - thought) {
        (input, output) = (prompt.0, answer.0.or(thoughts.0.map(|_| 0)));
    }
    let fits = |count: Option<u64>| count.is_none_or(|n| n <= 1 << 53);
    for (count, tokens) in [
        (Count::Input, input),
        (Count::InputCached, cached.0),
        (Count::Output, output),
        (Count::OutputReasoning, thoughts.0),
        (Count::Total, total.0),
    ] {
        parts.set(count, tokens);
    }
    parts.rejected += prompt.1 + tools.1 + answer.1 + thoughts.1 + cached.1 + total.1;
    (fits(input) && fits(output)).then_some(parts)
}
