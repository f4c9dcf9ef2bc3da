//! The facts of a recorded exchange from other sources: `truth.json` of its case.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The facts of one connection.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// The purpose of the case.
    pub shows: String,
    /// The end of the connection.
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
    /// The finish reason of each choice, as the server wrote it.
    pub finish_reasons: BTreeMap<String, String>,
    /// SSE events, the end mark included.
    pub sse_events: Option<usize>,
    /// Events with visible output.
    pub content_frames: Option<usize>,
    /// SSE comments.
    pub sse_comments: Option<usize>,
    /// True if `[DONE]` was present.
    pub done_marker: Option<bool>,
    /// Completion tokens of all choices, if a source covers the exchange.
    pub true_completion_tokens: Option<u64>,
    /// Bytes of the request on the wire.
    pub request_bytes: usize,
    /// Bytes of the response on the wire.
    pub response_bytes: usize,
    /// Tick of the first byte of the request, microseconds.
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
