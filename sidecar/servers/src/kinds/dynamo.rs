//! NVIDIA Dynamo's front end.

use metrics::ServerKind;

use crate::vocabulary::{Vocabulary, all, empty};

/// Prompt tokens are only in a histogram. The KV cache belongs to its workers, which have pages of their own.
pub(super) static PAGE: Vocabulary = Vocabulary {
    running: &[&[all("dynamo_frontend_inflight_requests")]],
    waiting: &[&[all("dynamo_frontend_queued_requests")]],
    prompt_tokens: &[&[all("dynamo_frontend_input_sequence_tokens_sum")]],
    generation_tokens: &[
        &[all("dynamo_frontend_output_tokens_total")],
        &[all("dynamo_frontend_output_sequence_tokens_sum")],
    ],
    ..empty(ServerKind::Dynamo, &["dynamo_"])
};
