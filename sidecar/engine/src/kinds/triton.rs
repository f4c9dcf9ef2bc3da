//! NVIDIA Triton, where its page is on the port of its interface (its OpenAI front end's is).

use relay::Kind;

use crate::vocabulary::{Vocabulary, all, silent, with};

/// It counts no tokens. What is running and cached it says for the TensorRT-LLM backend only.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[with("nv_trt_llm_request_metrics", "request_type", "scheduled")]],
    waiting: &[
        &[with("nv_trt_llm_request_metrics", "request_type", "waiting")],
        &[all("nv_inference_pending_request_count")],
    ],
    kv_cache: &[&[with("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction")]],
    ..silent(Kind::Triton, &["nv_inference_", "nv_trt_llm_"])
};
