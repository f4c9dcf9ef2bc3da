//! The fields that the two OpenAI dialects share: the frame around the choices, with the additions of vLLM, LMDeploy
//! (`output_ids`) and llama.cpp. A usage may stand in a choice (Moonshot) or below a member of the provider (`x_groq`).
//!
//! Times: llama.cpp's `timings` count the first token to the prompt. vLLM's `metrics` measure the first
//! token from the scheduling of the request, and the queue time separately. mistral.rs reports seconds
//! inside `usage`. Dynamo sends `nvext.timing` to clients that request it. llama.cpp counts speculative
//! decoding in `timings`, vLLM in `metrics` (`--per-request-spec-decode-metrics`).

use super::usage;
use crate::field::{Field, Fields};
use crate::frame::Unit;
use crate::name::Dimension;

/// Builds the tree of the fields of both dialects and of `paths`.
pub(super) fn fields(paths: &[(&'static str, Field)]) -> Fields {
    let places = [("choices[].usage", Field::InnerUsage), ("*.usage", Field::InnerUsage)];
    usage::fields(&[COMMON, paths].concat(), &places)
}

/// The same, also of each element of an array: LiteLLM answers a list of models with an array of answers.
pub(super) fn fields_and_lists(paths: &[(&'static str, Field)]) -> Fields {
    fields(paths).also_at("[]", Field::Element, "")
}

/// The fields of both dialects.
const COMMON: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("service_tier", Field::ServiceTier),
    // What the client sends, and SGLang's parts of the count.
    ("metadata", Field::Intermediate),
    ("sglext", Field::Intermediate),
    ("choices", Field::Choices),
    ("choices[]", Field::Choice),
    ("choices[].index", Field::Index),
    ("choices[].finish_reason", Field::Finish),
    ("choices[].token_ids", Field::Ids),
    ("choices[].token_ids[]", Field::Varying),
    ("choices[].output_ids", Field::OtherIds),
    ("choices[].output_ids[]", Field::Varying),
    ("choices[].logprobs.content", Field::Logprobs),
    // Vertex AI, and LiteLLM for Anthropic's models.
    ("usage.extra_properties.google.traffic_type", Field::Dimension(Dimension::Traffic)),
    ("usage.speed", Field::Dimension(Dimension::Speed)),
    ("usage.inference_geo", Field::Dimension(Dimension::Geography)),
    ("usage.total_prompt_time_sec", Field::Prefill(Unit::Seconds)),
    ("usage.total_completion_time_sec", Field::Decode(Unit::Seconds)),
    ("timings", Field::Timings),
    ("timings.prompt_n", Field::TimingsPrompt),
    ("timings.cache_n", Field::TimingsCached),
    ("timings.predicted_n", Field::TimingsPredicted),
    ("timings.prompt_ms", Field::Prefill(Unit::Milliseconds)),
    ("timings.predicted_ms", Field::Decode(Unit::Milliseconds)),
    ("timings.draft_n", Field::Drafted),
    ("timings.draft_n_accepted", Field::DraftAccepted),
    ("__verbose.timings", Field::VerboseTimings),
    ("__verbose.generation_settings.timings_per_token", Field::VerboseSetting),
    ("metrics.queue_time_ms", Field::Queue(Unit::Milliseconds)),
    ("metrics.time_to_first_token_ms", Field::Prefill(Unit::Milliseconds)),
    ("metrics.generation_time_ms", Field::Decode(Unit::Milliseconds)),
    ("metrics.speculative_decoding.num_draft_tokens", Field::Drafted),
    ("metrics.speculative_decoding.num_accepted_draft_tokens", Field::DraftAccepted),
    ("nvext.timing.prefill_wait_time_ms", Field::Queue(Unit::Milliseconds)),
    ("nvext.timing.prefill_time_ms", Field::Prefill(Unit::Milliseconds)),
    ("prompt_progress", Field::Progress),
];
