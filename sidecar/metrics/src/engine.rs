//! What an upstream's own metrics page says, in one vocabulary for every server. The law: what the
//! server does not say stays unsaid; nothing is derived from what we measured ourselves except the
//! drift, which is the difference of the two.

use relay::Kind;

/// Places that a prompt token comes from: computed by the server, held by its own prefix cache,
/// transferred from a KV store or another server.
pub const PROMPT_SOURCES: [&str; 3] = ["compute", "cache", "transfer"];

/// The share of all prompt tokens above which hidden cached tokens are a fault and no rounding.
const HIDDEN_MIN_RATIO: f64 = 0.01;

/// One upstream as its own page has it. Absent is "the server does not say", or "could not be read".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineReading {
    /// Whether the page could be read the last time; `None` if nobody asks for it.
    pub up: Option<bool>,
    /// The kind of server, once known.
    pub kind: Option<Kind>,
    /// Requests in the running batch.
    pub running_requests: Option<f64>,
    /// Requests that wait for a seat in it.
    pub waiting_requests: Option<f64>,
    /// Share of the KV cache in use, 0 to 1; the mean over engines.
    pub kv_cache_usage_ratio: Option<f64>,
    /// Share of the prompt tokens looked up since the last reading that the prefix cache had.
    pub prefix_cache_hit_ratio: Option<f64>,
    /// Prompt tokens the server counted since the baseline, cached ones included.
    pub prompt_tokens: Option<f64>,
    /// Tokens it generated since the baseline.
    pub generation_tokens: Option<f64>,
    /// Prompt tokens by where they came from, since the baseline, in the order of [`PROMPT_SOURCES`].
    pub prompt_source_tokens: [Option<f64>; PROMPT_SOURCES.len()],
    /// The least number of cached prompt tokens since the baseline that the server's usage did not report.
    pub hidden_cached_tokens: Option<f64>,
    /// Requests it put back into the queue since the baseline.
    pub preemptions: Option<f64>,
    /// Requests it turned away for a limit of its queue since the baseline.
    pub admission_rejections: Option<f64>,
    /// Its prompt tokens less ours, since the baseline.
    pub drift_input_tokens: Option<f64>,
    /// Its generated tokens less ours, since the baseline.
    pub drift_output_tokens: Option<f64>,
}

impl EngineReading {
    /// Returns whether the server's usage leaves out cached tokens that its page shows.
    pub fn hides_cached_tokens(&self) -> bool {
        let (hidden, prompt) = (self.hidden_cached_tokens.unwrap_or(0.0), self.prompt_tokens.unwrap_or(0.0));
        hidden > prompt * HIDDEN_MIN_RATIO
    }
}
