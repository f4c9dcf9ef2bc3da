//! llama.cpp's `llama-server`, started with `--metrics`.

use relay::Kind;

use crate::vocabulary::{Vocabulary, all, silent};

/// `prompt_tokens_total` excludes what the cache had, so that is added, and the counters move when a
/// request ends. Reading the page resets `prompt_tokens_seconds` and `predicted_tokens_seconds`,
/// averages since the last reading.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("llamacpp:requests_processing")]],
    waiting: &[&[all("llamacpp:requests_deferred")]],
    // Gone from the newest.
    kv_cache: &[&[all("llamacpp:kv_cache_usage_ratio")]],
    cache_hits: &[&[all("llamacpp:prompt_tokens_cached_total")]],
    cache_lookups: &[&[all("llamacpp:prompt_tokens_cached_total"), all("llamacpp:prompt_tokens_total")]],
    prompt_tokens: &[&[all("llamacpp:prompt_tokens_total"), all("llamacpp:prompt_tokens_cached_total")]],
    prompt_sources: [
        &[&[all("llamacpp:prompt_tokens_total")]],
        &[&[all("llamacpp:prompt_tokens_cached_total")]],
        &[],
    ],
    generation_tokens: &[&[all("llamacpp:tokens_predicted_total")]],
    ..silent(Kind::LlamaCpp, &["llamacpp:"])
};
