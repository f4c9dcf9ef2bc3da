//! The readings of the control plane. Invariant: names from requests are stored as labels, with the same caps as in
//! the workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attribution::Shares;
use crate::budget::Budgets;
use crate::cell::{Count, Merge};
use crate::format::Format;
use crate::histogram::{Distribution, Histogram};
use crate::names::OTHER;
use crate::part::Parts;
use crate::reload::Reloads;
use crate::spend::Spend;
use crate::table::{ENERGY_PER_TOKEN_J, Metric};

/// The latest readings of the control plane.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub(crate) tenant_shares: Shares,
    pub(crate) model_shares: Shares,
    per_token: BTreeMap<Arc<str>, Histogram<{ ENERGY_PER_TOKEN_J.len() + 1 }>>,
    /// Under labels.
    pub(crate) spend: Spend,
    /// Under labels.
    pub(crate) budgets: Budgets,
    pub(crate) parts: Parts,
    pub(crate) reloads: Reloads,
    /// In the order of [`Format::ALL`].
    pub(crate) scrapes: [Count; Format::ALL.len()],
}

impl Control {
    /// Moves everything counted under an evicted model label to `_other`.
    pub(crate) fn evict_model(&mut self, label: &Arc<str>) {
        self.spend.evict_model(label);
        if let Some(energies) = self.per_token.remove(label) {
            self.per_token.entry(OTHER.into()).or_default().merge(&energies);
        }
    }

    /// Moves everything counted under an evicted tenant label to `_other`.
    pub(crate) fn evict_tenant(&mut self, label: &Arc<str>) {
        self.spend.evict_tenant(label);
        self.budgets.evict(label);
    }

    pub(crate) fn energy_per_token(&mut self, label: Arc<str>, joules: f64) {
        self.per_token.entry(label).or_default().joules(Metric::EnergyPerToken, joules);
    }

    /// Returns the energy per output token, by model.
    pub(crate) fn energies(&self) -> Vec<(Arc<str>, Distribution)> {
        self.per_token.iter().map(|(model, of)| (Arc::clone(model), of.read())).collect()
    }
}
