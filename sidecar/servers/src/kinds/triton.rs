//! NVIDIA Triton, if its page is on the port of its interface, as with its OpenAI front end.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty, with};

/// It counts no tokens. Running requests and KV cache are exported for the TensorRT-LLM backend only.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[with("nv_trt_llm_request_metrics", "request_type", "scheduled")]],
    waiting: &[
        &[with("nv_trt_llm_request_metrics", "request_type", "waiting")],
        &[all("nv_inference_pending_request_count")],
    ],
    kv_cache: &[&[with("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction")]],
    ..empty(ServerKind::Triton, &["nv_inference_", "nv_trt_llm_"])
};
