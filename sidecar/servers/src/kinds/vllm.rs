//! vLLM, with one label set for each engine of a data-parallel deployment.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty, with};

/// `prompt_tokens` includes cached tokens, and counts a prompt once per requested choice.
/// `vllm:iteration_tokens_total` is a histogram despite its name, and not read.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("vllm:num_requests_running")]],
    waiting: &[&[all("vllm:num_requests_waiting")]],
    kv_cache: &[&[all("vllm:kv_cache_usage_perc")], &[all("vllm:gpu_cache_usage_perc")]],
    cache_hits: &[&[all("vllm:prefix_cache_hits_total")], &[all("vllm:gpu_prefix_cache_hits_total")]],
    cache_lookups: &[
        &[all("vllm:prefix_cache_queries_total")],
        &[all("vllm:gpu_prefix_cache_queries_total")],
    ],
    prompt_tokens: &[&[all("vllm:prompt_tokens_total")]],
    generation_tokens: &[&[all("vllm:generation_tokens_total")]],
    prompt_sources: [
        &[&[with("vllm:prompt_tokens_by_source_total", "source", "local_compute")]],
        &[&[with("vllm:prompt_tokens_by_source_total", "source", "local_cache_hit")]],
        &[&[with("vllm:prompt_tokens_by_source_total", "source", "external_kv_transfer")]],
    ],
    admission_rejections: &[&[all("vllm:admission_rejections_total")]],
    preemptions: &[&[all("vllm:num_preemptions_total")]],
    ..empty(ServerKind::Vllm, &["vllm:"])
};
