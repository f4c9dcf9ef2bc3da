//! The fields that the two OpenAI dialects share: the frame around the choices, and the usage object with
//! the additions of vLLM, SGLang, LMDeploy (`output_ids`) and llama.cpp.
//!
//! Times: llama.cpp's `timings` count the first token to the prompt. vLLM's `metrics` measure the first
//! token from the scheduling of the request, and the queue time separately. mistral.rs reports seconds
//! inside `usage`. Dynamo sends `nvext.timing` to clients that request it. llama.cpp counts speculative
//! decoding in `timings`, vLLM in `metrics` (`--per-request-spec-decode-metrics`).

use crate::field::Field;
use crate::frame::Unit;

/// The fields of both dialects.
pub(crate) const COMMON: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("service_tier", Field::ServiceTier),
    ("choices", Field::Choices),
    ("choices[]", Field::Choice),
    ("choices[].index", Field::Index),
    ("choices[].finish_reason", Field::Finish),
    ("choices[].token_ids", Field::Ids),
    ("choices[].token_ids[]", Field::Varying),
    ("choices[].output_ids", Field::OtherIds),
    ("choices[].output_ids[]", Field::Varying),
    ("choices[].logprobs.content", Field::Logprobs),
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::InputTokens),
    ("usage.completion_tokens", Field::OutputTokens),
    // An answer in the shape of another path: the names of the Responses API.
    ("usage.input_tokens", Field::InputTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("usage.input_tokens_details.cached_tokens", Field::CachedTokens),
    ("usage.output_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("usage.total_tokens", Field::Varying),
    ("usage.prompt_tokens_details.cached_tokens", Field::CachedTokens),
    ("usage.prompt_tokens_details.cache_write_tokens", Field::CacheWriteTokens),
    ("usage.prompt_tokens_details.created_cache_tokens", Field::CacheWriteTokens),
    // LiteLLM, for Anthropic's models.
    ("usage.prompt_tokens_details.cache_creation_tokens", Field::CacheWriteTokens),
    (
        "usage.prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",
        Field::CacheWrite1hTokens,
    ),
    ("usage.prompt_tokens_details.audio_tokens", Field::InputAudioTokens),
    ("usage.prompt_tokens_details.image_tokens", Field::InputImageTokens),
    ("usage.prompt_tokens_details.video_tokens", Field::InputVideoTokens),
    ("usage.prompt_tokens_details.multimodal_tokens.audio", Field::InputAudioTokens),
    ("usage.prompt_tokens_details.multimodal_tokens.image", Field::InputImageTokens),
    ("usage.prompt_tokens_details.multimodal_tokens.video", Field::InputVideoTokens),
    ("usage.completion_tokens_details.image_tokens", Field::OutputImageTokens),
    ("usage.completion_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("usage.completion_tokens_details.audio_tokens", Field::AudioTokens),
    ("usage.reasoning_tokens", Field::ReasoningTokens),
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
