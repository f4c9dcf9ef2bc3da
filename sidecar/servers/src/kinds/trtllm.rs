//! TensorRT-LLM behind `trtllm-serve`, with `return_perf_metrics` set.

use metrics::ServerKind;

use crate::detect::TENSORRT_LLM_PAGE;
use crate::vocabulary::{Vocabulary, all, empty};

/// The page is not at `/metrics`, which is a queue of statistics in JSON that a read empties.
pub(super) static PAGE: Vocabulary = Vocabulary {
    page: TENSORRT_LLM_PAGE,
    running: &[&[all("trtllm_num_requests_running")]],
    waiting: &[&[all("trtllm_num_requests_waiting")]],
    kv_cache: &[&[all("trtllm_kv_cache_utilization")]],
    cache_hit_ratio: &[&[all("trtllm_kv_cache_hit_rate")]],
    prompt_tokens: &[&[all("trtllm_prompt_tokens_total")]],
    prompt_sources: [&[], &[&[all("trtllm_prompt_cached_tokens_total")]], &[]],
    generation_tokens: &[&[all("trtllm_generation_tokens_total")]],
    ..empty(ServerKind::TensorrtLlm, &["trtllm_"])
};
