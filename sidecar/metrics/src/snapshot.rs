//! Numbers for the live page and the demo's table, computed from the same sums as the metrics page, so that the two
//! agree.

use std::sync::Arc;

use meter::ServerKind;
use meter::{Ending, TokenType};

use crate::cell::Count;
use crate::model::ModelCells;
use crate::table::Metric;
use crate::totals::Totals;

/// The numbers at one moment; counts are since the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// One for each label, sorted; `_other` and `_unknown` included.
    pub models: Vec<ModelSnapshot>,
    /// Each upstream's name, and true if it is reachable.
    pub upstreams: Vec<(Arc<str>, bool)>,
    /// Upstreams whose usage omits cached tokens that their metrics pages show, with their kinds.
    pub hide_cached_tokens: Vec<(Arc<str>, Option<ServerKind>)>,
    /// Requests forwarded unmetered.
    pub passthrough: u64,
    /// Requests that the proxy itself answered with an error.
    pub refused: u64,
    /// Losses of every kind.
    pub dropped: u64,
}

/// One model at one moment; counts are since the start of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSnapshot {
    /// The model's label.
    pub model: Arc<str>,
    /// Finished exchanges.
    pub exchanges: u64,
    /// Finished exchanges that failed; those that the client left are not included.
    pub errors: u64,
    /// Finished exchanges that the client left.
    pub aborts: u64,
    /// Exchanges in flight.
    pub in_flight: u64,
    /// Prompt tokens of finished exchanges, cached ones included.
    pub input_tokens: u64,
    /// Generated tokens of finished exchanges.
    pub output_tokens: u64,
    /// Generated tokens, those of exchanges in flight included.
    pub live_output_tokens: u64,
    /// Median seconds to the first token, interpolated within a bucket.
    pub first_token_p50_s: Option<f64>,
    /// 99th percentile of the seconds to the first token, interpolated within a bucket.
    pub first_token_p99_s: Option<f64>,
    /// Median output tokens per second, interpolated within a bucket.
    pub output_rate_p50: Option<f64>,
}

impl Snapshot {
    pub(crate) fn of(totals: &Totals) -> Self {
        let proxy = &totals.proxy;
        Self {
            models: totals.models.iter().map(|(name, cells)| ModelSnapshot::of(name, cells)).collect(),
            upstreams: totals.upstreams.clone(),
            hide_cached_tokens: hide_cached_tokens(totals),
            passthrough: sum(&proxy.passthrough),
            refused: sum(&proxy.refused),
            dropped: sum(&proxy.dropped),
        }
    }
}

fn hide_cached_tokens(totals: &Totals) -> Vec<(Arc<str>, Option<ServerKind>)> {
    let hiding = totals.engines.iter().filter(|(_, engine)| engine.hides_cached_tokens());
    hiding.map(|(name, engine)| (Arc::clone(name), engine.kind)).collect()
}

impl ModelSnapshot {
    fn of(name: &Arc<str>, cells: &ModelCells) -> Self {
        let ended = |which: fn(Ending) -> bool| {
            let endings = Ending::ALL.into_iter().filter(|ending| which(*ending));
            endings.map(|ending| cells.ended(ending)).fold(0, u64::saturating_add)
        };
        let tokens = |which: fn(TokenType) -> bool| {
            let kinds = TokenType::ALL.into_iter().filter(|kind| which(*kind));
            kinds.map(|kind| cells.tokens_of(kind)).fold(0, u64::saturating_add)
        };
        let first_token = cells.over_concurrency(|loaded| loaded.first_token.read());
        let output_rate = cells.over_concurrency(|loaded| loaded.output_rate.read());
        Self {
            model: Arc::clone(name),
            exchanges: ended(|_| true),
            errors: ended(|ending| !ending.is_success() && ending != Ending::ClientAbort),
            aborts: ended(|ending| ending == Ending::ClientAbort),
            in_flight: cells.in_flight.get(),
            input_tokens: tokens(TokenType::is_input),
            output_tokens: tokens(|kind| !kind.is_input()),
            live_output_tokens: cells.live_tokens.get(),
            first_token_p50_s: first_token.quantile(Metric::FirstToken, 0.5),
            first_token_p99_s: first_token.quantile(Metric::FirstToken, 0.99),
            output_rate_p50: output_rate.quantile(Metric::OutputRate, 0.5),
        }
    }
}

fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(Count::get).fold(0, u64::saturating_add)
}
