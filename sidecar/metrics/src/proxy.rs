//! One worker's cells without a model: the proxy's own work. Only that worker writes them.

use meter::edges::OVERHEAD_S;
use meter::{Class, Dropped, Passthrough, Refusal, Stated, UsageStep};
use meter::{Provenance, Tokens};
use meter::{RuleKind, TokenRejection};

use crate::cell::{Count, Merge};
use crate::histogram::Histogram;
use crate::table::{LABEL_OVERFLOW, Metric};

/// A worker's block, aligned to a cache line, so that two workers' blocks never share one.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct ProxyCells {
    /// In the order of [`Passthrough::ALL`].
    pub(crate) passthrough: [Count; Passthrough::ALL.len()],
    /// In the order of [`Stated::ALL`].
    pub(crate) mislabelled: [Count; Stated::ALL.len()],
    /// In the order of [`Refusal::ALL`].
    pub(crate) refused: [Count; Refusal::ALL.len()],
    /// In the order of [`RuleKind::ALL`].
    pub(crate) tenant_rules: [Count; RuleKind::ALL.len()],
    pub(crate) untrusted_headers: Count,
    /// In the order of [`TokenRejection::ALL`].
    pub(crate) untrusted_tokens: [Count; TokenRejection::ALL.len()],
    /// In the order of [`UsageStep::ALL`].
    pub(crate) usage: [Count; UsageStep::ALL.len()],
    /// In the order of [`Dropped::ALL`].
    pub(crate) dropped: [Count; Dropped::ALL.len()],
    /// Exchanges under a capped label: no loss, as they are counted under another label.
    pub(crate) capped: Count,
    /// By direction, in the order of [`DIRECTIONS`], then by provenance.
    pub(crate) provenance: [[Count; Provenance::ALL.len()]; DIRECTIONS.len()],
    /// In the order of [`Class::ALL`].
    pub(crate) overhead: [Histogram<{ OVERHEAD_S.len() + 1 }>; Class::ALL.len()],
}

impl ProxyCells {
    /// Adds the provenance of a finished exchange's counts.
    pub(crate) fn end(&self, tokens: &Tokens) {
        let [input, output] = &self.provenance;
        input[tokens.input_provenance as usize].add(1);
        output[tokens.output_provenance as usize].add(1);
    }

    /// Adds an exchange counted under `_other`.
    pub(crate) fn overflow(&self) {
        self.capped.add(1);
    }

    /// Returns the losses and the exchanges under a capped label, by label value.
    pub(crate) fn dropped_by_name(&self) -> impl Iterator<Item = (&'static str, &Count)> {
        let dropped = Dropped::ALL.into_iter().map(Dropped::name).zip(&self.dropped);
        dropped.chain([(LABEL_OVERFLOW, &self.capped)])
    }

    /// Adds the proxy's own time in one exchange.
    pub(crate) fn overhead(&self, class: Class, ns: u64) {
        self.overhead[class as usize].seconds(Metric::Overhead, ns);
    }
}

impl Merge for ProxyCells {
    fn merge(&self, other: &Self) {
        let Self {
            passthrough,
            mislabelled,
            refused,
            tenant_rules,
            untrusted_headers,
            untrusted_tokens,
            usage,
            dropped,
            capped,
            provenance,
            overhead,
        } = self;
        passthrough.merge(&other.passthrough);
        mislabelled.merge(&other.mislabelled);
        refused.merge(&other.refused);
        tenant_rules.merge(&other.tenant_rules);
        untrusted_headers.merge(&other.untrusted_headers);
        untrusted_tokens.merge(&other.untrusted_tokens);
        usage.merge(&other.usage);
        dropped.merge(&other.dropped);
        capped.merge(&other.capped);
        provenance.merge(&other.provenance);
        overhead.merge(&other.overhead);
    }
}

/// Label values of `direction`.
pub(crate) const DIRECTIONS: [&str; 2] = ["input", "output"];
