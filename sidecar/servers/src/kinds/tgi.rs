//! Hugging Face's text-generation-inference.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty};

/// Tokens are only in histograms, observed when a request succeeds. There is no gauge of the KV cache:
/// `tgi_batch_current_max_tokens` is the maximum that the batch may need.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("tgi_batch_current_size")]],
    waiting: &[&[all("tgi_queue_size")]],
    prompt_tokens: &[&[all("tgi_request_input_length_sum")]],
    generation_tokens: &[&[all("tgi_request_generated_tokens_sum")]],
    ..empty(ServerKind::Tgi, &["tgi_"])
};
