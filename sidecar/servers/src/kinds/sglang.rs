//! SGLang, started with `--enable-metrics`.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty};

/// `prompt_tokens_total` includes cached tokens.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("sglang:num_running_reqs")]],
    waiting: &[&[all("sglang:num_queue_reqs")]],
    kv_cache: &[&[all("sglang:token_usage")]],
    cache_hit_ratio: &[&[all("sglang:cache_hit_rate")]],
    prompt_tokens: &[&[all("sglang:prompt_tokens_total")]],
    prompt_sources: [&[], &[&[all("sglang:cached_tokens_total")]], &[]],
    generation_tokens: &[&[all("sglang:generation_tokens_total")]],
    ..empty(ServerKind::Sglang, &["sglang:"])
};
