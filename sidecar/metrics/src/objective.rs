//! Objectives: what is wanted of the exchanges of some models and tenants, and whether an exchange
//! was as wanted. The law: judged is what can be judged, by bounds that are edges of our own
//! histograms, so that nobody's panel tells another story than the verdicts.
//!
//! | the exchange | its verdict |
//! |---|---|
//! | a streamed success | by its time to first token (≤ the bound) and its speed (≥ the bound); one that did not happen, as the speed of a single token, counts as met |
//! | a success in one piece | late if it took longer than a stream that just keeps both bounds: first token + (tokens per answer - 1) / speed. That is all that can be seen of it, and `slow_output` |
//! | cut, an error, empty, our own doing | `failed` |
//! | a status of 500 and above, 429, 408, 424 | `failed`: the server had no room or no time, or (424, TGI's) its model failed |
//! | another status of 400 and above | none: the client's own mistake |
//! | a client that left | none: why it left is not known |
//! | embeddings and rankings | none: they have no tokens to wait for |

use std::sync::Arc;

use meter::{Ending, Provenance, Record, TokenType, Tokens};
use scan::Dialect;
use text::Glob;

use crate::cell::{Absorb, Count};

/// What is wanted of some exchanges.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Its name: the label.
    pub name: Arc<str>,
    /// The models it is for; empty is all.
    pub models: Vec<Glob>,
    /// The tenants it is for; empty is all.
    pub tenants: Vec<Glob>,
    /// The most time to the first token, nanoseconds: an edge of that histogram.
    pub first_token_ns: u64,
    /// The least speed of one exchange, tokens per second: an edge of that histogram.
    pub output_rate: f64,
    /// The share of exchanges that are to meet both, above 0 and below 1.
    pub target_ratio: f64,
}

/// What came of an objective in one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that can be judged was as wanted.
    Met,
    /// The first token was late.
    SlowFirstToken,
    /// The tokens after it were slow, or an answer in one piece was late.
    SlowOutput,
    /// Both.
    SlowBoth,
    /// No answer, or not all of it.
    Failed,
}

impl Verdict {
    /// Every verdict, in the order of the page.
    pub const ALL: [Self; 5] =
        [Self::Met, Self::SlowFirstToken, Self::SlowOutput, Self::SlowBoth, Self::Failed];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::SlowFirstToken => "slow_first_token",
            Self::SlowOutput => "slow_output",
            Self::SlowBoth => "slow_both",
            Self::Failed => "failed",
        }
    }
}

impl Objective {
    /// Whether it is for a model's and a tenant's exchanges.
    pub fn covers(&self, model: &str, tenant: &str) -> bool {
        let any = |globs: &[Glob], name| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
        any(&self.models, model) && any(&self.tenants, tenant)
    }

    /// What came of it in an exchange; `None` if that exchange says nothing about it.
    pub fn judge(&self, record: &Record) -> Option<Verdict> {
        if matches!(record.identity.dialect, Dialect::Embeddings | Dialect::Rerank) {
            return None;
        }
        match record.ending {
            Ending::Complete | Ending::Length if record.streamed => Some(self.stream(record)),
            Ending::Complete | Ending::Length => Some(self.body(record)),
            Ending::ClientAbort => self.abandoned(record),
            Ending::ErrorStatus => servers_fault(record.status).then_some(Verdict::Failed),
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

    /// Why a client left is not known, and what it did not wait for cannot be judged. But one that had
    /// waited longer for its first token than was promised was let down, whyever it left.
    fn abandoned(&self, record: &Record) -> Option<Verdict> {
        let waited_ns = record.timing.first_token_ns.unwrap_or(record.timing.duration_ns);
        (record.asked_stream && waited_ns > self.first_token_ns).then_some(Verdict::SlowFirstToken)
    }

    fn body(&self, record: &Record) -> Verdict {
        // Several answers are generated side by side.
        let each = output(&record.tokens) as f64 / f64::from(record.choices.max(1));
        let after_first_ns = (each - 1.0).max(0.0) / self.output_rate * 1e9;
        let known = record.tokens.output_provenance != Provenance::None;
        let late = record.timing.duration_ns as f64 > self.first_token_ns as f64 + after_first_ns;
        if known && late { Verdict::SlowOutput } else { Verdict::Met }
    }
}

/// Whether a status says that the server could not, rather than that the client asked wrongly.
/// 408 is what gateways answer when the server behind them took too long (LiteLLM).
fn servers_fault(status: u16) -> bool {
    status >= 500 || matches!(status, 408 | 424 | 429)
}

/// All generated tokens, not past the end: a server may claim any number of each type.
fn output(tokens: &Tokens) -> u64 {
    let generated = TokenType::ALL.into_iter().filter(|kind| !kind.is_input());
    generated.map(|kind| tokens.of(kind)).fold(0, u64::saturating_add)
}

/// The objective of an exchange, by its place in the list, and what came of it: the first one that
/// covers it counts.
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
    /// Those of them in exchanges that met it.
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

impl Absorb for ObjectiveCells {
    fn absorb(&self, other: &Self) {
        let Self { verdicts, tokens, good_tokens } = self;
        verdicts.absorb(&other.verdicts);
        tokens.absorb(&other.tokens);
        good_tokens.absorb(&other.good_tokens);
    }
}

#[cfg(test)]
mod tests;
