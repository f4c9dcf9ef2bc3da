//! The GPUs and their energy.

use serde::{Deserialize, Serialize};

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Its id, as in the label `hw_id`.
    pub id: String,
    /// Its product name.
    pub name: String,
    /// True if its last sample is fresh.
    pub up: bool,
    /// Share of time in which it was busy, 0 to 1.
    pub utilization_ratio: Option<f64>,
    /// Memory in use.
    pub memory_used_bytes: Option<f64>,
    /// All memory.
    pub memory_limit_bytes: Option<f64>,
    /// Power drawn.
    pub power_watts: Option<f64>,
    /// Power limit.
    pub power_limit_watts: Option<f64>,
    /// Temperature.
    pub temperature_celsius: Option<f64>,
}

/// The energy of all GPUs since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Energy {
    /// Energy of settled exchanges.
    pub attributed_joules: f64,
    /// Energy drawn while no exchange was in flight.
    pub idle_joules: f64,
    /// Energy of work that belongs to no known exchange.
    pub unattributed_joules: f64,
    /// Energy of exchanges in flight or not settled.
    pub pending_joules: f64,
}
