//! The costs and losses of the metering itself.

use serde::{Deserialize, Serialize};

/// The costs and losses of the metering.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeterCost {
    /// Median processing time of the proxy in one exchange since the start, seconds.
    pub overhead_p50_seconds: Option<f64>,
    /// 99th percentile of it, seconds.
    pub overhead_p99_seconds: Option<f64>,
    /// CPU time per second, in cores, over the last ten seconds.
    pub cpu_cores: Option<f64>,
    /// Resident memory.
    pub resident_bytes: Option<f64>,
    /// Open client connections.
    pub connections: u64,
    /// Lost telemetry and work since the start.
    pub dropped: u64,
    /// Requests forwarded unmetered since the start.
    pub passthrough: u64,
    /// Requests that the proxy answered with an error since the start.
    pub refused: u64,
}

/// The ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerState {
    /// True if it is writable.
    pub up: bool,
    /// Rows on the disk, written by this process.
    pub rows: u64,
    /// Age of the oldest row that is not on the disk, seconds.
    pub commit_lag_seconds: f64,
    /// Rows dropped together with their totals.
    pub lost_rows: u64,
}
