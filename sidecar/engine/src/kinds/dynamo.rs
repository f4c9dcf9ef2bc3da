//! NVIDIA Dynamo's front end.

use relay::Kind;

use crate::vocabulary::{Vocabulary, all, silent};

/// Prompt tokens are only in a histogram. The KV cache is its workers' business, whose pages are
/// elsewhere.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("dynamo_frontend_inflight_requests")]],
    waiting: &[&[all("dynamo_frontend_queued_requests")]],
    prompt_tokens: &[&[all("dynamo_frontend_input_sequence_tokens_sum")]],
    generation_tokens: &[
        &[all("dynamo_frontend_output_tokens_total")],
        &[all("dynamo_frontend_output_sequence_tokens_sum")],
    ],
    ..silent(Kind::Dynamo, &["dynamo_"])
};
