//! The answer of `/api/curve`, as far as it is shown.

use serde::Deserialize;

/// The curves.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Curves {
    /// One for each model at each upstream.
    pub(crate) models: Vec<ModelCurve>,
}

/// The curve of a model at an upstream.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ModelCurve {
    /// The model's label.
    pub(crate) model: String,
    /// The upstream, if the page names it.
    pub(crate) upstream: Option<String>,
    /// The ranges of concurrency, in order.
    pub(crate) by_concurrency: Vec<CurvePoint>,
    /// The knees by objective.
    pub(crate) knees: Vec<Knee>,
}

/// The requests of a range of concurrency.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CurvePoint {
    /// The range, as in `2-4`.
    pub(crate) concurrency: String,
    /// The requests.
    pub(crate) exchanges: u64,
    /// The throughput of all requests together; an estimate.
    pub(crate) aggregate_tokens_per_second_estimate: Option<f64>,
    /// The speed of one request.
    pub(crate) speed_tokens_per_second: Quantiles,
    /// The time to the first token.
    pub(crate) first_token_seconds: Quantiles,
}

/// The quantiles of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Quantiles {
    /// The median.
    pub(crate) p50: Option<f64>,
}

/// The knee of an objective.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Knee {
    /// `configured` or `preset`.
    pub(crate) basis: String,
    /// A sentence.
    pub(crate) words: String,
}
