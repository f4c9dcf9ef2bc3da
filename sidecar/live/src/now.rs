//! The answer of `/api/now`, and each event of `/api/stream`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::Upstream;
use crate::gpu::{Energy, Gpu};
use crate::meter::{LedgerState, MeterCost};
use crate::objective::Objective;
use crate::scope::Scope;

/// The state of the process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Now {
    /// The program's version.
    pub version: String,
    /// Time of the reading, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Start of the process and of all totals, milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The readiness for traffic.
    pub readiness: Readiness,
    /// ISO 4217 code of all money; `null` without a price book.
    pub currency: Option<String>,
    /// The upstreams, in the order they were configured.
    pub upstreams: Vec<Upstream>,
    /// The objectives, in the order they were configured.
    pub objectives: Vec<Objective>,
    /// All traffic.
    pub all: Scope,
    /// The models, those with the most output tokens first; at most [`Now::ROWS`].
    pub models: Vec<Scope>,
    /// The tenants, those with the most output tokens first; at most [`Now::ROWS`].
    pub tenants: Vec<Scope>,
    /// Models and tenants that are not listed because there are too many.
    pub unlisted: u64,
    /// Finished exchanges since the start, by ending.
    pub endings: BTreeMap<String, u64>,
    /// The GPUs; empty if none is read.
    pub gpus: Vec<Gpu>,
    /// The energy of all GPUs since the start; `null` without one.
    pub energy: Option<Energy>,
    /// The costs and losses of the metering.
    pub meter: MeterCost,
    /// The ledger; `null` without one.
    pub ledger: Option<LedgerState>,
}

impl Now {
    /// The most rows of models, and of tenants.
    pub const ROWS: usize = 100;
}

/// The readiness for traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "reasons", rename_all = "snake_case")]
pub enum Readiness {
    /// Ready.
    #[default]
    Ready,
    /// Ready, with warnings that do not affect traffic.
    Impaired(Vec<String>),
    /// Not ready, with the reasons.
    NotReady(Vec<String>),
}
