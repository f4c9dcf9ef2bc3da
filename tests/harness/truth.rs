//! What is known of a recorded exchange from elsewhere: `truth.json` of its case.

use std::collections::BTreeMap;

use serde::Deserialize;

/// All of one connection.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// What it shows.
    pub shows: String,
    /// How the connection ended.
    pub connection: String,
    /// Its responses, in order.
    pub responses: Vec<Truth>,
}

/// One response.
#[derive(Clone, Debug, Deserialize)]
pub struct Truth {
    /// HTTP status.
    pub status: u16,
    /// Tokens of the last usage object.
    pub reported: Option<Reported>,
    /// Why each choice ended, as the server wrote it.
    pub finish_reasons: BTreeMap<String, String>,
    /// SSE events, the end mark included.
    pub sse_events: Option<usize>,
    /// Events with visible output.
    pub content_frames: Option<usize>,
    /// SSE comments.
    pub sse_comments: Option<usize>,
    /// Whether `[DONE]` was there.
    pub done_marker: Option<bool>,
    /// Completion tokens of all choices, where some source covers the exchange.
    pub true_completion_tokens: Option<u64>,
    /// Bytes of the request on the wire.
    pub request_bytes: usize,
    /// Bytes of the response on the wire.
    pub response_bytes: usize,
    /// When the request began to be sent, microseconds.
    pub request_us: u64,
}

/// The last usage object of a response.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Reported {
    /// Prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Completion tokens.
    pub completion_tokens: Option<u64>,
}
