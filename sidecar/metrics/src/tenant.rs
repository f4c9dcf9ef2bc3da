//! One worker's cells for one tenant. Invariant: only that worker writes them, when an exchange ends or a request is
//! rejected.

use meter::{Ending, Provenance, Record, TokenType};

use meter::Refusal;

use crate::cell::{Count, Merge};
use crate::labels::Traffic;
use crate::lazy::Chain;
use crate::objective::Verdict;

/// A tenant's block, aligned to a cache line as a model's.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct TenantCells {
    /// In the order of [`TokenType::ALL`].
    pub(crate) tokens: [Count; TokenType::ALL.len()],
    /// In the order of [`Ending::ALL`].
    pub(crate) exchanges: [Count; Ending::ALL.len()],
    /// Exchanges that the server may have processed and whose prompt was not counted.
    pub(crate) uncounted: Count,
    /// In the order of [`Refusal::ALL`].
    pub(crate) refused: [Count; Refusal::ALL.len()],
    /// By objective, then by verdict.
    pub(crate) verdicts: Chain<usize, [Count; Verdict::ALL.len()]>,
}

impl TenantCells {
    /// Adds a finished exchange.
    pub(crate) fn end(&self, record: &Record) {
        self.exchanges[record.ending as usize].add(1);
        let is_processed = meter::is_processed(record.status, record.upstream_attempts);
        if record.tokens.input_provenance == Provenance::None && is_processed {
            self.uncounted.add(1);
        }
        for kind in TokenType::ALL {
            self.tokens[kind as usize].add(record.tokens.of(kind));
        }
    }
}

impl Traffic for TenantCells {
    fn exchanges(&self) -> u64 {
        self.exchanges.iter().map(Count::get).fold(0, u64::saturating_add)
    }
}

impl Merge for TenantCells {
    fn merge(&self, other: &Self) {
        let Self { tokens, exchanges, uncounted, refused, verdicts } = self;
        tokens.merge(&other.tokens);
        exchanges.merge(&other.exchanges);
        uncounted.merge(&other.uncounted);
        refused.merge(&other.refused);
        verdicts.merge(&other.verdicts);
    }
}
