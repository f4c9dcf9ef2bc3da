//! LMDeploy, started with `--enable-metrics`.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty};

/// `lmdeploy:iteration_tokens_total` is a histogram despite its name, and not read.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("lmdeploy:num_requests_running")]],
    waiting: &[&[all("lmdeploy:num_requests_waiting")]],
    kv_cache: &[&[all("lmdeploy:gpu_cache_usage_perc")]],
    cache_hit_ratio: &[&[all("lmdeploy:prefix_cache_hit_rate")]],
    prompt_tokens: &[&[all("lmdeploy:prompt_tokens_total")]],
    prompt_sources: [&[], &[&[all("lmdeploy:cached_tokens_total")]], &[]],
    generation_tokens: &[&[all("lmdeploy:generation_tokens_total")]],
    ..empty(ServerKind::Lmdeploy, &["lmdeploy:"])
};
