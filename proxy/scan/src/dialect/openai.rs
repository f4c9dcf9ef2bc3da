//! What the two OpenAI dialects share: the frame around the choices, and the usage object with the
//! additions of vLLM, SGLang and llama.cpp.

use crate::field::Field;

/// Paths of both dialects.
pub(crate) const COMMON: &[(&str, Field)] = &[
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("choices", Field::Choices),
    ("choices[]", Field::Choice),
    ("choices[].index", Field::Index),
    ("choices[].finish_reason", Field::Finish),
    ("choices[].token_ids", Field::Ids),
    ("choices[].token_ids[]", Field::Varying),
    ("choices[].logprobs.content", Field::Logprobs),
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::InputTokens),
    ("usage.completion_tokens", Field::OutputTokens),
    ("usage.total_tokens", Field::Varying),
    ("usage.prompt_tokens_details.cached_tokens", Field::CachedTokens),
    ("usage.prompt_tokens_details.cache_write_tokens", Field::CacheWriteTokens),
    ("usage.prompt_tokens_details.created_cache_tokens", Field::CacheWriteTokens),
    ("usage.completion_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("usage.completion_tokens_details.audio_tokens", Field::AudioTokens),
    ("usage.reasoning_tokens", Field::ReasoningTokens),
    ("timings", Field::Timings),
    ("timings.prompt_n", Field::TimingsPrompt),
    ("timings.cache_n", Field::TimingsCached),
    ("timings.predicted_n", Field::TimingsPredicted),
    ("prompt_progress", Field::Progress),
];
