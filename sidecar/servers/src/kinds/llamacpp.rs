//! llama.cpp's `llama-server`, started with `--metrics`.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty};

/// `prompt_tokens_total` excludes cached tokens, which are added; the counters grow when a request ends. A read of
/// the page resets `prompt_tokens_seconds` and `predicted_tokens_seconds`, which are averages since the last read.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("llamacpp:requests_processing")]],
    waiting: &[&[all("llamacpp:requests_deferred")]],
    // Removed in newer versions.
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
    ..empty(ServerKind::LlamaCpp, &["llamacpp:"])
};
