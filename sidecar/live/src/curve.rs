//! The degradation curves, as `/api/curve` and `tokenmeter curve --format json` write them; the manual of the crate `curve`
//! documents each member. A member that an older program does not write has its default.

use serde::{Deserialize, Serialize};

/// The curves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Curves {
    /// The time that they cover; since the start without one.
    pub window_seconds: Option<f64>,
    /// One for each model at each upstream.
    pub models: Vec<ModelCurves>,
}

/// The curves of a model at an upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelCurves {
    /// The model's label.
    pub model: String,
    /// The upstream, if the page names it.
    pub upstream: Option<String>,
    /// The ranges of concurrency, in order.
    pub by_concurrency: Vec<ConcurrencyPoint>,
    /// The ranges of positions in a response, in order.
    pub by_position: Vec<PositionSpeed>,
    /// The knees by objective.
    pub knees: Vec<Knee>,
}

/// The streams of a range of concurrency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConcurrencyPoint {
    /// The range, as in `2-4`.
    pub concurrency: String,
    /// Its least concurrency.
    pub concurrency_least: u64,
    /// Its greatest concurrency, unless it is open.
    pub concurrency_most: Option<u64>,
    /// The streams.
    pub exchanges: u64,
    /// The speed of one stream.
    pub speed_tokens_per_second: Distribution,
    /// The throughput of all streams together; an estimate.
    pub aggregate_tokens_per_second_estimate: Option<f64>,
    /// The concurrency of that estimate.
    pub aggregate_concurrency: f64,
    /// The time to the first token.
    pub first_token_seconds: Distribution,
    /// The speed of the prompt until then.
    pub prompt_tokens_per_second: Distribution,
}

/// The summary of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// The observations.
    pub count: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// The value of half of the streams.
    pub p50: Option<f64>,
    /// The value of 9 of 10.
    pub p90: Option<f64>,
    /// The value of 99 of 100.
    pub p99: Option<f64>,
}

/// The speed at a range of positions in a response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PositionSpeed {
    /// The range, as in `1-64`.
    pub position: String,
    /// Tokens after the first of a response.
    pub tokens: u64,
    /// Their time.
    pub seconds: Option<f64>,
    /// The time of one.
    pub seconds_per_token: Option<f64>,
    /// Their speed, if the time was long enough to measure.
    pub tokens_per_second: Option<f64>,
}

/// The knee of an objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Knee {
    /// The objective's name.
    pub objective: String,
    /// The objective's origin.
    pub basis: Basis,
    /// Its minimum speed.
    pub tokens_per_second: f64,
    /// The highest range up to which it is kept in every range.
    pub kept_up_to: Option<String>,
    /// The lowest range at which it is not kept.
    pub missed_at: Option<String>,
    /// Higher ranges in which it is kept nevertheless.
    pub kept_again_at: Vec<String>,
    /// A sentence.
    pub words: String,
    /// Judged exchanges, for a configured objective.
    pub judged_exchanges: Option<u64>,
    /// Those that met the whole objective.
    pub met_exchanges: Option<u64>,
    /// The target share of exchanges that meet it.
    pub target_ratio: Option<f64>,
}

/// The origin of an objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The configuration of that tokenmeter.
    Configured,
    /// A preset, as a candidate.
    #[default]
    Preset,
}
