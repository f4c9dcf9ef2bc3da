//! All traffic, or that of one model or tenant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::point::Point;
use crate::recent::Recent;

/// All traffic, or that of one model or tenant: its last seconds and its totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// The label of the model or the tenant; empty for all traffic.
    pub name: String,
    /// The last second.
    pub point: Point,
    /// The current rates and counts, of the last 10 or 60 seconds.
    pub recent: Recent,
    /// The sums since the start.
    pub totals: Totals,
    /// The tenant's budget closest to its limit; `null` without one, and for models.
    pub budget: Option<Budget>,
}

/// The sums since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Finished exchanges.
    pub exchanges: u64,
    /// Exchanges that failed, at the upstream or in the proxy.
    pub errors: u64,
    /// Exchanges that the client left.
    pub aborts: u64,
    /// Tokens of finished exchanges by type (`input`, `input_cached`, `output`, …); the types are disjoint.
    pub tokens: BTreeMap<String, u64>,
    /// Output tokens of finished exchanges by provenance (`engine`, `reported`, `estimated`, …); `null` for tenants.
    pub output_provenance: Option<BTreeMap<String, u64>>,
    /// Output tokens, counted while they arrive; `null` for tenants.
    pub live_output_tokens: Option<u64>,
    /// Cost of finished exchanges in `Now::currency`, as in the spend counters; `null` without a price book.
    pub spend: Option<f64>,
    /// Exchanges without a price, which `spend` does not include; `null` for tenants.
    pub unpriced_exchanges: Option<u64>,
    /// Cost of one million tokens, input and output; `null` without tokens or a price book, or if an exchange that may be
    /// of this scope has no price.
    pub cost_per_million_tokens: Option<f64>,
    /// Share of the judged exchanges that met their objective, 0 to 1; `null` without any.
    pub goodput_ratio: Option<f64>,
}

/// A tenant's spending limit in the current period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// `day`, `month` or another period of the budgets file.
    pub period: String,
    /// The limit, in `Now::currency`.
    pub limit: f64,
    /// The spend since the period began.
    pub used: f64,
    /// The forecast spend at the end of the period; `null` if there is none yet.
    pub forecast: Option<f64>,
}
