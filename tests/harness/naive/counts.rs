//! Token counts from a frame's tree.

use scan::{Count, Counts};
use serde_json::Value;

/// The place of a count.
pub(crate) type Place = (&'static str, Count);

/// A number as a count: a whole number from 0 to 2^53, in any spelling.
pub(crate) fn count(value: &Value) -> Option<u64> {
    const MOST: u64 = 1 << 53;
    let number = value.as_f64()?;
    match value.as_u64() {
        Some(whole) => Some(whole),
        None if number >= 0.0 && number.fract() == 0.0 && number <= MOST as f64 => Some(number as u64),
        None => None,
    }
    .filter(|&n| n <= MOST)
}

/// A number as a count, or one in a string of at most 20 bytes.
pub(crate) fn stated(value: &Value) -> Option<u64> {
    let Some(text) = value.as_str().filter(|text| text.len() <= 20) else { return count(value) };
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.fract() == 0.0)?;
    (number <= (1_u64 << 53) as f64).then_some(number as u64)
}

/// The index in a choice.
pub(crate) fn index(choice: &Value) -> Option<u32> {
    u32::try_from(choice.get("index").and_then(count)?).ok()
}

/// The counts at the named places. `None` if two places of one count have different numbers, neither of which is zero.
pub(crate) fn at(frame: &Value, places: &[(impl AsRef<str>, Count)]) -> Option<Counts> {
    let mut counts = Counts::default();
    for (path, count) in places {
        let value = frame.pointer(path.as_ref()).unwrap_or(&Value::Null);
        match (value, stated(value)) {
            (Value::Null, _) => {}
            (_, None) => counts.rejected += 1,
            (_, Some(number)) => match counts.get(*count) {
                None | Some(0) => counts.set(*count, number),
                Some(earlier) if number == 0 || number == earlier => {}
                Some(_) => return None,
            },
        }
    }
    Some(counts)
}

/// Members of a usage with OpenAI's names, in each of its APIs, and those of the providers that imitate it.
const OPENAI: &[Place] = &[
    ("/prompt_tokens", Count::Input),
    ("/completion_tokens", Count::Output),
    ("/input_tokens", Count::Input),
    ("/output_tokens", Count::Output),
    ("/reasoning_tokens", Count::OutputReasoning),
    ("/total_tokens", Count::Total),
    ("/cache_creation/ephemeral_1h_input_tokens", Count::InputCacheWrite1h),
    ("/audio_tokens", Count::InputAudio),
    ("/image_tokens", Count::InputImage),
    ("/video_tokens", Count::InputVideo),
];

/// The names of the object of the prompt's parts, and its members.
const PROMPT: [&str; 4] =
    ["/prompt_tokens_details", "/input_tokens_details", "/input_token_details", "/prompt_token_details"];
const PROMPT_PARTS: &[Place] = &[
    ("/cached_tokens", Count::InputCached),
    ("/cache_write_tokens", Count::InputCacheWrite),
    ("/created_cache_tokens", Count::InputCacheWrite),
    ("/cache_creation_tokens", Count::InputCacheWrite),
    ("/cache_creation_input_tokens", Count::InputCacheWrite),
    ("/cache_creation/ephemeral_1h_input_tokens", Count::InputCacheWrite1h),
    ("/cache_creation_token_details/ephemeral_1h_input_tokens", Count::InputCacheWrite1h),
    ("/cached_tokens_details/audio_tokens", Count::InputCachedAudio),
    ("/cached_tokens_details/image_tokens", Count::InputCachedImage),
    ("/audio_tokens", Count::InputAudio),
    ("/image_tokens", Count::InputImage),
    ("/video_tokens", Count::InputVideo),
    ("/multimodal_tokens/audio", Count::InputAudio),
    ("/multimodal_tokens/image", Count::InputImage),
    ("/multimodal_tokens/video", Count::InputVideo),
];

/// The names of the object of the answer's parts, and its members.
const ANSWER: [&str; 3] = ["/completion_tokens_details", "/output_tokens_details", "/output_token_details"];
const ANSWER_PARTS: &[Place] = &[
    ("/reasoning_tokens", Count::OutputReasoning),
    ("/thinking_tokens", Count::OutputReasoning),
    ("/audio_tokens", Count::OutputAudio),
    ("/image_tokens", Count::OutputImage),
    ("/video_tokens", Count::OutputVideo),
];

/// The names of cached tokens, and of those written to a cache, beside the parts of the prompt: the larger of both
/// places counts.
const CACHED: &[Place] = &[
    ("/cached_tokens", Count::InputCached),
    ("/num_cached_tokens", Count::InputCached),
    ("/cached_prompt_tokens", Count::InputCached),
    ("/cached_input_tokens", Count::InputCached),
    ("/prompt_cache_hit_tokens", Count::InputCached),
    ("/cache_read_input_tokens", Count::InputCached),
    ("/cache_creation_input_tokens", Count::InputCacheWrite),
];

/// The places of tokens that were written to a cache for five minutes. With those of one hour they are all, if the
/// total is missing.
const FIVE_MINUTES: [&str; 3] = [
    "/cache_creation/ephemeral_5m_input_tokens",
    "/prompt_tokens_details/cache_creation/ephemeral_5m_input_tokens",
    "/prompt_tokens_details/cache_creation_token_details/ephemeral_5m_input_tokens",
];

/// Returns true if a usage object has one of these names of another dialect: which of both counts applies is undefined.
pub(crate) fn is_foreign(usage: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| usage.get(*name).is_some())
}

/// Of a usage object with OpenAI's names.
pub(crate) fn of_usage(usage: &Value) -> Option<Counts> {
    of_usage_without(usage, &[])
}

/// The same, without the members with these paths, which count elsewhere.
pub(crate) fn of_usage_without(usage: &Value, others: &[&str]) -> Option<Counts> {
    if FIVE_MINUTES.iter().any(|path| usage.pointer(path).is_some()) {
        return None;
    }
    let is_here = |path: &String| !others.contains(&path.as_str());
    let listed = |objects: &[&str], parts: &[Place]| -> Vec<(String, Count)> {
        let paths = objects
            .iter()
            .flat_map(|object| parts.iter().map(move |(path, count)| (format!("{object}{path}"), *count)));
        paths.filter(|(path, _)| is_here(path)).collect()
    };
    let places =
        [listed(&[""], OPENAI), listed(&PROMPT, PROMPT_PARTS), listed(&ANSWER, ANSWER_PARTS)].concat();
    let (mut counts, beside) = (at(usage, &places)?, at(usage, &listed(&[""], CACHED))?);
    for count in [Count::InputCached, Count::InputCacheWrite] {
        counts.set(count, counts.get(count).max(beside.get(count)));
    }
    counts.rejected += beside.rejected;
    Some(counts)
}

/// Of llama.cpp's `timings`, where there is no usage object.
pub(crate) fn of_timings(timings: &Value) -> Option<Counts> {
    let number = |name: &str| timings.get(name).and_then(count);
    let cached = number("cache_n");
    let input = number("prompt_n").map(|n| n + cached.unwrap_or(0));
    number("predicted_n").map(|output| {
        Counts::of([(Count::Output, output)]).with(Count::Input, input).with(Count::InputCached, cached)
    })
}

/// The counts of a native llama.cpp frame. `Some(None)` without counts.
pub(crate) fn of_native(frame: &Value) -> Option<Option<Counts>> {
    let counts = at(
        frame,
        &[
            ("/tokens_evaluated", Count::Input),
            ("/timings/cache_n", Count::InputCached),
            ("/tokens_predicted", Count::Output),
        ],
    )?;
    Some((!counts.is_empty()).then_some(counts))
}
