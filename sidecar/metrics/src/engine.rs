//! The readings of an upstream's metrics page, the same for every server. Invariant: a value that the server does not
//! report is absent. Only the drift uses tokenmeter's own counts: it is the difference of the two.

use std::time::SystemTime;

use meter::ServerKind;

/// Label values of `source` of a prompt token: computed by the server, held by its own prefix cache, transferred
/// from a KV store or another server.
pub const PROMPT_SOURCES: [&str; 3] = ["compute", "cache", "transfer"];

/// Share of all prompt tokens above which hidden cached tokens are a fault and not a rounding error.
const HIDDEN_MIN_RATIO: f64 = 0.01;

/// One reading of an upstream's metrics page. `None`: the server does not report it, or the read failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineReading {
    /// True if the last read succeeded; `None` if the page is not read.
    pub up: Option<bool>,
    /// Time of the last read that succeeded.
    pub read_at: Option<SystemTime>,
    /// The kind of server, once detected.
    pub kind: Option<ServerKind>,
    /// Requests in the running batch.
    pub running_requests: Option<f64>,
    /// Requests in the server's queue.
    pub waiting_requests: Option<f64>,
    /// Share of the KV cache in use, 0 to 1; the mean over engines.
    pub kv_cache_usage_ratio: Option<f64>,
    /// Share of the prompt tokens looked up since the last read that the prefix cache held.
    pub prefix_cache_hit_ratio: Option<f64>,
    /// Prompt tokens the server counted since the baseline, cached ones included.
    pub prompt_tokens: Option<f64>,
    /// Tokens it generated since the baseline.
    pub generation_tokens: Option<f64>,
    /// Prompt tokens since the baseline by source, in the order of [`PROMPT_SOURCES`].
    pub prompt_source_tokens: [Option<f64>; PROMPT_SOURCES.len()],
    /// Lower bound of the cached prompt tokens since the baseline that the server's usage did not report.
    pub hidden_cached_tokens: Option<f64>,
    /// Requests preempted since the baseline.
    pub preemptions: Option<f64>,
    /// Requests rejected because of a queue limit since the baseline.
    pub admission_rejections: Option<f64>,
    /// The server's prompt tokens minus tokenmeter's, since the baseline.
    pub drift_input_tokens: Option<f64>,
    /// The server's generated tokens minus tokenmeter's, since the baseline.
    pub drift_output_tokens: Option<f64>,
}

impl EngineReading {
    /// Removes the differences between the server's counts and the proxy's.
    pub fn without_comparison(self) -> Self {
        Self { hidden_cached_tokens: None, drift_input_tokens: None, drift_output_tokens: None, ..self }
    }

    /// Returns true if the server's usage omits cached tokens that its page shows.
    pub fn hides_cached_tokens(&self) -> bool {
        let (hidden, prompt) = (self.hidden_cached_tokens.unwrap_or(0.0), self.prompt_tokens.unwrap_or(0.0));
        hidden > prompt * HIDDEN_MIN_RATIO
    }
}
