//! The usage object with OpenAI's names, of all its APIs, and with the names of the providers that imitate it. Each
//! dialect of this family reads all of them, at each place at which it may have a usage: providers answer one API with
//! the names of another, and add names of their own.
//!
//! | provider | its own names |
//! |---|---|
//! | Kimi, StepFun, Together | `cached_tokens`; Moonshot's stream has the usage inside the choice |
//! | DeepSeek, SiliconFlow | `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`, whose sum is the prompt |
//! | Mistral | `num_cached_tokens`, `prompt_token_details`; `connector_tokens` of its tools, beside the prompt |
//! | Snowflake | `guardrails_tokens`, beside the prompt |
//! | DashScope | `cache_creation_input_tokens` and `cache_creation` in the details; the modalities beside them |
//! | LiteLLM, Databricks | `cache_read_input_tokens` and `cache_creation_input_tokens`, which are part of the prompt here |
//! | Groq | the usage of a stream below `x_groq` |
//! | SGLang, Perplexity | `reasoning_tokens` |
//! | Meta | a list of named numbers in the place of the usage |
//!
//! A member may have the words of its name in any style: `promptTokens` (OCI), `PromptTokens` (Hunyuan).
//!
//! A member with a path and without a field is known, and is not a count of its own: a part of the answer that no price
//! distinguishes (`text_tokens`, tokens of predictions), or the sum of others.

use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::{BESIDE_PROMPT, CACHE_WRITE_5M, OTHER_CACHE_WRITE, OTHER_CACHED};

/// The members.
const USAGE: &[(&str, Field)] = &[
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::Count(Count::Input)),
    ("usage.completion_tokens", Field::Count(Count::Output)),
    ("usage.input_tokens", Field::Count(Count::Input)),
    ("usage.output_tokens", Field::Count(Count::Output)),
    ("usage.total_tokens", Field::Count(Count::Total)),
    ("usage.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("usage.cached_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.num_cached_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.cached_prompt_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.cached_input_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.prompt_cache_hit_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.cache_hit_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.prompt_cache_miss_tokens", Field::Intermediate),
    ("usage.cache_read_input_tokens", Field::Extra(OTHER_CACHED)),
    ("usage.cache_creation_input_tokens", Field::Extra(OTHER_CACHE_WRITE)),
    ("usage.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    ("usage.cache_creation.ephemeral_1h_input_tokens", Field::Count(Count::InputCacheWrite1h)),
    ("usage.connector_tokens", Field::Extra(BESIDE_PROMPT)),
    ("usage.guardrails_tokens", Field::Extra(BESIDE_PROMPT)),
    ("usage.audio_tokens", Field::Count(Count::InputAudio)),
    ("usage.image_tokens", Field::Count(Count::InputImage)),
    ("usage.video_tokens", Field::Count(Count::InputVideo)),
    ("usage.text_tokens", Field::Intermediate),
    ("usage.prompt_tokens_details.cached_tokens", Field::Count(Count::InputCached)),
    ("usage.prompt_tokens_details.cached_tokens_details.text_tokens", Field::Intermediate),
    ("usage.prompt_tokens_details.cached_tokens_details.audio_tokens", Field::Count(Count::InputCachedAudio)),
    ("usage.prompt_tokens_details.cached_tokens_details.image_tokens", Field::Count(Count::InputCachedImage)),
    ("usage.prompt_tokens_details.cached_tokens_per_turn", Field::Intermediate),
    ("usage.prompt_tokens_details.cache_write_tokens", Field::Count(Count::InputCacheWrite)),
    ("usage.prompt_tokens_details.created_cache_tokens", Field::Count(Count::InputCacheWrite)),
    ("usage.prompt_tokens_details.cache_creation_tokens", Field::Count(Count::InputCacheWrite)),
    ("usage.prompt_tokens_details.cache_creation_input_tokens", Field::Count(Count::InputCacheWrite)),
    ("usage.prompt_tokens_details.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    (
        "usage.prompt_tokens_details.cache_creation.ephemeral_1h_input_tokens",
        Field::Count(Count::InputCacheWrite1h),
    ),
    ("usage.prompt_tokens_details.input_tokens_per_turn", Field::Intermediate),
    ("usage.prompt_tokens_details.text_tokens", Field::Intermediate),
    ("usage.prompt_tokens_details.audio_tokens", Field::Count(Count::InputAudio)),
    ("usage.prompt_tokens_details.image_tokens", Field::Count(Count::InputImage)),
    ("usage.prompt_tokens_details.video_tokens", Field::Count(Count::InputVideo)),
    ("usage.prompt_tokens_details.multimodal_tokens.audio", Field::Count(Count::InputAudio)),
    ("usage.prompt_tokens_details.multimodal_tokens.image", Field::Count(Count::InputImage)),
    ("usage.prompt_tokens_details.multimodal_tokens.video", Field::Count(Count::InputVideo)),
    ("usage.completion_tokens_details.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("usage.completion_tokens_details.thinking_tokens", Field::Count(Count::OutputReasoning)),
    ("usage.completion_tokens_details.text_tokens", Field::Intermediate),
    ("usage.completion_tokens_details.audio_tokens", Field::Count(Count::OutputAudio)),
    ("usage.completion_tokens_details.image_tokens", Field::Count(Count::OutputImage)),
    ("usage.completion_tokens_details.video_tokens", Field::Count(Count::OutputVideo)),
    ("usage.completion_tokens_details.accepted_prediction_tokens", Field::Intermediate),
    ("usage.completion_tokens_details.rejected_prediction_tokens", Field::Intermediate),
    ("usage.completion_tokens_details.tool_output_tokens", Field::Intermediate),
    ("usage.completion_tokens_details.output_tokens_per_turn", Field::Intermediate),
    ("usage.completion_tokens_details.tool_output_tokens_per_turn", Field::Intermediate),
    ("metrics[]", Field::Metric),
    ("metrics[].metric", Field::PartName),
    ("metrics[].value", Field::MetricValue),
    ("event.metrics[]", Field::Metric),
    ("event.metrics[].metric", Field::PartName),
    ("event.metrics[].value", Field::MetricValue),
];

/// The objects that have the same members as another one of the usage.
const OTHER_NAMES: [(&str, &str); 6] = [
    (
        "usage.prompt_tokens_details.cache_creation_token_details",
        "usage.prompt_tokens_details.cache_creation",
    ),
    ("usage.input_tokens_details", "usage.prompt_tokens_details"),
    ("usage.input_token_details", "usage.prompt_tokens_details"),
    ("usage.prompt_token_details", "usage.prompt_tokens_details"),
    ("usage.output_tokens_details", "usage.completion_tokens_details"),
    ("usage.output_token_details", "usage.completion_tokens_details"),
];

/// Builds the tree of `paths` with the members of a usage, at `usage` and at these other places.
pub(super) fn fields(paths: &[(&'static str, Field)], places: &[(&'static str, Field)]) -> Fields {
    let mut fields = super::foreign::with(&[USAGE, paths].concat());
    for (name, like) in OTHER_NAMES {
        fields = fields.also_at(name, Field::Intermediate, like);
    }
    for &(place, field) in places {
        fields = fields.also_at(place, field, "usage");
    }
    places.iter().fold(fields.with_unknown("usage"), |fields, (place, _)| fields.with_unknown(place))
}
