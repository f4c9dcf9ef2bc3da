//! Token counts from a frame's tree.

use scan::Counts;
use serde_json::Value;

/// The place of a count, and its kind.
pub(crate) type Place = (&'static str, fn(&mut Counts) -> &mut Option<u64>);

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

/// The index in a choice.
pub(crate) fn index(choice: &Value) -> Option<u32> {
    u32::try_from(choice.get("index").and_then(count)?).ok()
}

/// The counts at the named places. `None` if two places of one count disagree.
pub(crate) fn at(frame: &Value, places: &[Place]) -> Option<Counts> {
    let mut counts = Counts::default();
    for (path, slot) in places {
        let value = frame.pointer(path).unwrap_or(&Value::Null);
        match (value, count(value)) {
            (Value::Null, _) => {}
            (_, None) => counts.rejected += 1,
            (_, Some(number)) => {
                let earlier = slot(&mut counts).replace(number);
                if earlier.is_some_and(|n| n != number) {
                    return None;
                }
            }
        }
    }
    Some(counts)
}

/// Of an OpenAI `usage` object.
pub(crate) const OPENAI: &[Place] = &[
    ("/prompt_tokens", |c| &mut c.input),
    ("/completion_tokens", |c| &mut c.output),
    ("/input_tokens", |c| &mut c.input),
    ("/output_tokens", |c| &mut c.output),
    ("/input_tokens_details/cached_tokens", |c| &mut c.input_cached),
    ("/output_tokens_details/reasoning_tokens", |c| &mut c.output_reasoning),
    ("/prompt_tokens_details/cached_tokens", |c| &mut c.input_cached),
    ("/prompt_tokens_details/cache_write_tokens", |c| &mut c.input_cache_write),
    ("/prompt_tokens_details/created_cache_tokens", |c| &mut c.input_cache_write),
    ("/prompt_tokens_details/cache_creation_tokens", |c| &mut c.input_cache_write),
    ("/prompt_tokens_details/cache_creation_token_details/ephemeral_1h_input_tokens", |c| {
        &mut c.input_cache_write_1h
    }),
    ("/prompt_tokens_details/audio_tokens", |c| &mut c.input_audio),
    ("/prompt_tokens_details/image_tokens", |c| &mut c.input_image),
    ("/prompt_tokens_details/video_tokens", |c| &mut c.input_video),
    ("/prompt_tokens_details/multimodal_tokens/audio", |c| &mut c.input_audio),
    ("/prompt_tokens_details/multimodal_tokens/image", |c| &mut c.input_image),
    ("/prompt_tokens_details/multimodal_tokens/video", |c| &mut c.input_video),
    ("/completion_tokens_details/image_tokens", |c| &mut c.output_image),
    ("/completion_tokens_details/reasoning_tokens", |c| &mut c.output_reasoning),
    ("/completion_tokens_details/audio_tokens", |c| &mut c.output_audio),
    ("/reasoning_tokens", |c| &mut c.output_reasoning),
];

/// Returns true if a usage object has one of these names of another dialect: which of both counts applies is undefined.
pub(crate) fn is_foreign(usage: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| usage.get(*name).is_some())
}

/// Of an OpenAI `usage` object.
pub(crate) fn of_usage(usage: &Value) -> Option<Counts> {
    at(usage, OPENAI)
}

/// Of llama.cpp's `timings`, where there is no usage object.
pub(crate) fn of_timings(timings: &Value) -> Option<Counts> {
    let number = |name: &str| timings.get(name).and_then(count);
    let cached = number("cache_n");
    let input = number("prompt_n").map(|n| n + cached.unwrap_or(0));
    number("predicted_n").map(|n| Counts {
        input,
        input_cached: cached,
        output: Some(n),
        ..Counts::default()
    })
}

/// The counts of a native llama.cpp frame. `Some(None)` without counts.
pub(crate) fn of_native(frame: &Value) -> Option<Option<Counts>> {
    let counts = at(
        frame,
        &[
            ("/tokens_evaluated", |c| &mut c.input),
            ("/timings/cache_n", |c| &mut c.input_cached),
            ("/tokens_predicted", |c| &mut c.output),
        ],
    )?;
    Some((counts != Counts::default()).then_some(counts))
}

/// Of a Responses `usage` object.
pub(crate) fn of_responses(usage: &Value) -> Option<Counts> {
    at(
        usage,
        &[
            ("/input_tokens", |c| &mut c.input),
            ("/output_tokens", |c| &mut c.output),
            ("/prompt_tokens", |c| &mut c.input),
            ("/completion_tokens", |c| &mut c.output),
            ("/prompt_tokens_details/cached_tokens", |c| &mut c.input_cached),
            ("/completion_tokens_details/reasoning_tokens", |c| &mut c.output_reasoning),
            ("/input_tokens_details/cached_tokens", |c| &mut c.input_cached),
            ("/input_tokens_details/cache_write_tokens", |c| &mut c.input_cache_write),
            ("/input_tokens_details/audio_tokens", |c| &mut c.input_audio),
            ("/input_tokens_details/image_tokens", |c| &mut c.input_image),
            ("/output_tokens_details/image_tokens", |c| &mut c.output_image),
            ("/output_tokens_details/reasoning_tokens", |c| &mut c.output_reasoning),
        ],
    )
}
