//! One second, or one minute, of a scope.

use serde::{Deserialize, Serialize};

/// One second, or one minute, of a scope. Rates are over that time. Quantiles are over the exchanges that ended in it
/// and the nine points before, so that a second without an end has one; a minute's are over the minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Output tokens per second, counted while they arrive; for tenants, of exchanges that ended.
    pub output_tokens_per_second: Option<f64>,
    /// Prompt tokens per second, cached ones included, of exchanges that ended.
    pub input_tokens_per_second: Option<f64>,
    /// Exchanges in flight at the end of the second, or the mean of the minute; `null` for tenants.
    pub in_flight: Option<f64>,
    /// Exchanges that ended, per second.
    pub exchanges_per_second: Option<f64>,
    /// Exchanges that failed, per second.
    pub errors_per_second: Option<f64>,
    /// Exchanges that the client left, per second.
    pub aborts_per_second: Option<f64>,
    /// Median time to the first token, seconds; `null` for tenants.
    pub first_token_p50_seconds: Option<f64>,
    /// 99th percentile of it, seconds; `null` for tenants.
    pub first_token_p99_seconds: Option<f64>,
    /// The speed that half of the requests reach, output tokens per second of one request; `null` for tenants.
    pub request_tokens_per_second_p50: Option<f64>,
    /// Spend per hour at the rate of this time, in `Now::currency`.
    pub spend_per_hour: Option<f64>,
    /// Power of all GPUs, watts; only for all traffic.
    pub watts: Option<f64>,
}
