//! An upstream, and the engine behind it.

use serde::{Deserialize, Serialize};

/// An upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Upstream {
    /// Name as configured.
    pub name: String,
    /// The listen address for its clients.
    pub listen: String,
    /// Its URL.
    pub url: String,
    /// True if the last probe reached it; `null` before the first.
    pub up: Option<bool>,
    /// True if its certificate is verified; `null` without TLS.
    pub verified: Option<bool>,
    /// An error of its configuration that makes counts or prices wrong, with its remedy.
    pub fault: Option<String>,
    /// The server's own numbers; `null` if its metrics page is not read.
    pub engine: Option<Engine>,
}

/// The server's own numbers, from its metrics page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// The server software (`vllm`, `sglang`, …).
    pub kind: Option<String>,
    /// True if the last read of the page succeeded.
    pub up: bool,
    /// Time of the last read that succeeded, milliseconds since 1970: the numbers are from then. `null` without one.
    pub read_unix_ms: Option<u64>,
    /// Requests in the running batch.
    pub running_requests: Option<f64>,
    /// Requests in the queue.
    pub waiting_requests: Option<f64>,
    /// Share of the KV cache in use, 0 to 1.
    pub kv_cache_usage_ratio: Option<f64>,
    /// Share of the prompt tokens that the prefix cache had, 0 to 1.
    pub prefix_cache_hit_ratio: Option<f64>,
}
