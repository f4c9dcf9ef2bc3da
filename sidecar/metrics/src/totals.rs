//! The sums over the cells of all workers, for one scrape. Each cell is read at one moment; two cells of a running
//! worker may differ by an exchange.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attribution::Share;
use crate::budget::Budgets;
use crate::cell::Count;
use crate::engine::EngineReading;
use crate::format::Format;
use crate::histogram::Distribution;
use crate::model::ModelCells;
use crate::objective::Objective;
use crate::part::Parts;
use crate::proxy::ProxyCells;
use crate::reload::Reloads;
use crate::spend::Spend;
use crate::tenant::TenantCells;

/// The sums over all workers.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) proxy: ProxyCells,
    /// By label, sorted.
    pub(crate) models: Vec<(Arc<str>, ModelCells)>,
    /// By label, sorted.
    pub(crate) tenants: Vec<(Arc<str>, TenantCells)>,
    /// The configured objectives; cells refer to them by index.
    pub(crate) objectives: Arc<[Objective]>,
    /// By name, sorted.
    pub(crate) upstreams: Vec<(Arc<str>, bool)>,
    /// Upstreams with TLS, by name, sorted; false if their certificate is not verified.
    pub(crate) verified: Vec<(Arc<str>, bool)>,
    /// By the upstream's name, sorted.
    pub(crate) engines: Vec<(Arc<str>, EngineReading)>,
    /// By label.
    pub(crate) tenant_shares: BTreeMap<Arc<str>, Share>,
    /// By label.
    pub(crate) model_shares: BTreeMap<Arc<str>, Share>,
    /// By model, sorted.
    pub(crate) energy_per_token: Vec<(Arc<str>, Distribution)>,
    /// Under labels.
    pub(crate) spend: Spend,
    /// Under labels.
    pub(crate) budgets: Budgets,
    pub(crate) parts: Parts,
    pub(crate) reloads: Reloads,
    /// Scrapes, in the order of [`Format::ALL`].
    pub(crate) scrapes: [Count; Format::ALL.len()],
}
