//! An objective, as configured.

use serde::{Deserialize, Serialize};

/// An objective, as configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Objective {
    /// Its name.
    pub name: String,
    /// Maximum time to the first token.
    pub first_token_seconds: Option<f64>,
    /// Minimum output tokens per second of one request.
    pub request_tokens_per_second: Option<f64>,
    /// Target share of exchanges that meet it, 0 to 1.
    pub target_ratio: Option<f64>,
}
