//! Objectives for the exchanges of some models and tenants, and the verdicts on exchanges. Invariant: the bounds are
//! bucket edges of the exported histograms, so that a panel of a histogram agrees with the verdicts.
//!
//! | exchange | verdict |
//! |---|---|
//! | a streamed success | by its time to first token (≤ the bound) and its speed (≥ the bound); a value that does not exist, such as the speed of a single token, counts as met |
//! | a success that was not streamed | `slow_output` if it took longer than a stream that just meets both bounds: first token + (tokens per answer - 1) / speed; only its duration is known |
//! | cut, an error in the stream, empty, an error of the proxy | `failed` |
//! | a status of 500 and above, 429, 408, 424 | `failed`: the server was overloaded or too slow, or (424, TGI's) its model failed |
//! | another status of 400 and above | none: a client error |
//! | a client that left | `slow_first_token` if it asked for a stream and waited longer than the bound; else none: its reason is unknown |
//! | embeddings and rankings | none: they have no output tokens |

use std::sync::Arc;

use meter::{Ending, Provenance, Record, TokenType, Tokens};
use scan::Dialect;
use text::Glob;

use crate::cell::{Count, Merge};

/// An objective for some exchanges.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Its name, the label value.
    pub name: Arc<str>,
    /// The models it covers; empty for all.
    pub models: Vec<Glob>,
    /// The tenants it covers; empty for all.
    pub tenants: Vec<Glob>,
    /// Maximum time to the first token, nanoseconds: an edge of its histogram.
    pub first_token_ns: u64,
    /// Minimum speed of one exchange, tokens per second: an edge of its histogram.
    pub output_rate: f64,
    /// Target share of exchanges that meet both, above 0 and below 1.
    pub target_ratio: f64,
}

meter::listed_enum! {
    /// The verdict of an objective on one exchange, in the order of the page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict {
        /// Every known value met its bound.
        Met = "met",
        /// The first token was late.
        SlowFirstToken = "slow_first_token",
        /// The tokens after it were slow, or an answer that was not streamed was late.
        SlowOutput = "slow_output",
        /// Both.
        SlowBoth = "slow_both",
        /// The answer is missing or incomplete.
        Failed = "failed",
    }
    /// Returns the label value.
    pub fn name(self);
}

impl Objective {
    /// Returns true if it covers the exchanges of this model and tenant.
    pub fn covers(&self, model: &str, tenant: &str) -> bool {
        let any = |globs: &[Glob], name| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
        any(&self.models, model) && any(&self.tenants, tenant)
    }

    /// Returns the verdict on an exchange; `None` if the exchange does not count.
    pub fn judge(&self, record: &Record) -> Option<Verdict> {
        if matches!(record.identity.dialect, Dialect::Embeddings | Dialect::Rerank) {
            return None;
        }
        match record.ending {
            Ending::Complete | Ending::Length if record.streamed => Some(self.stream(record)),
            Ending::Complete | Ending::Length => Some(self.body(record)),
            Ending::ClientAbort => self.aborted(record),
            Ending::Detached => None,
            Ending::ErrorStatus => is_server_error(record.status).then_some(Verdict::Failed),
            Ending::UpstreamCut | Ending::ErrorInBand | Ending::NoOutput | Ending::ProxyError => {
                Some(Verdict::Failed)
            }
        }
    }

    fn stream(&self, record: &Record) -> Verdict {
        let late = record.timing.first_token_ns.is_some_and(|ns| ns > self.first_token_ns);
        let slow = record.timing.output_rate.is_some_and(|rate| rate < self.output_rate);
        match (late, slow) {
            (false, false) => Verdict::Met,
            (true, false) => Verdict::SlowFirstToken,
            (false, true) => Verdict::SlowOutput,
            (true, true) => Verdict::SlowBoth,
        }
    }

    /// Returns the verdict on an exchange that the client left. Its reason is unknown, but a wait for the first token
    /// beyond the bound is a miss for any reason.
    fn aborted(&self, record: &Record) -> Option<Verdict> {
        let waited_ns = record.timing.first_token_ns.unwrap_or(record.timing.duration_ns);
        (record.asked_stream && waited_ns > self.first_token_ns).then_some(Verdict::SlowFirstToken)
    }

    fn body(&self, record: &Record) -> Verdict {
        // Several answers are generated in parallel.
        let each = output(&record.tokens) as f64 / f64::from(record.choices.max(1));
        let after_first_ns = (each - 1.0).max(0.0) / self.output_rate * 1e9;
        let known = record.tokens.output_provenance != Provenance::None;
        let late = record.timing.duration_ns as f64 > self.first_token_ns as f64 + after_first_ns;
        if known && late { Verdict::SlowOutput } else { Verdict::Met }
    }
}

/// Returns true for a status that reports a failure of the server and not a client error. Gateways (LiteLLM) answer 408
/// if the server behind them was too slow.
fn is_server_error(status: u16) -> bool {
    status >= 500 || matches!(status, 408 | 424 | 429)
}

/// Returns all generated tokens, saturating: a server may report any number of each type.
fn output(tokens: &Tokens) -> u64 {
    let generated = TokenType::ALL.into_iter().filter(|kind| !kind.is_input());
    generated.map(|kind| tokens.of(kind)).fold(0, u64::saturating_add)
}

/// Returns the index of the objective of an exchange and its verdict: the first objective that covers it applies.
pub(crate) fn judge(objectives: &[Objective], record: &Record) -> Option<(usize, Verdict)> {
    let identity = &record.identity;
    let at = objectives.iter().position(|one| one.covers(&identity.model, &identity.tenant))?;
    Some((at, objectives[at].judge(record)?))
}

/// One objective's cells within a model.
#[derive(Debug, Default)]
pub(crate) struct ObjectiveCells {
    /// In the order of [`Verdict::ALL`].
    pub(crate) verdicts: [Count; Verdict::ALL.len()],
    /// Output tokens by provenance, in the order of [`Provenance::ALL`].
    pub(crate) tokens: [Count; Provenance::ALL.len()],
    /// Output tokens of the exchanges that met it, by provenance.
    pub(crate) good_tokens: [Count; Provenance::ALL.len()],
}

impl ObjectiveCells {
    /// Adds an exchange.
    pub(crate) fn end(&self, verdict: Verdict, tokens: &Tokens) {
        self.verdicts[verdict as usize].add(1);
        let output = output(tokens);
        self.tokens[tokens.output_provenance as usize].add(output);
        if verdict == Verdict::Met {
            self.good_tokens[tokens.output_provenance as usize].add(output);
        }
    }
}

impl Merge for ObjectiveCells {
    fn merge(&self, other: &Self) {
        let Self { verdicts, tokens, good_tokens } = self;
        verdicts.merge(&other.verdicts);
        tokens.merge(&other.tokens);
        good_tokens.merge(&other.good_tokens);
    }
}

#[cfg(test)]
mod tests;
