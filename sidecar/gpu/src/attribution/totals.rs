//! Totals of the attributed energy, time and money, by tenant and by model.
//!
//! The law: names come from clients, so the number of labels is bounded. Later names count as
//! `_other`, and the sum stays complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::money::Cost;
use super::{ENERGY, Pair, TIME};

/// The label of all names beyond the bound.
pub const OTHER: &str = "_other";

/// Totals of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantUse {
    /// Energy attributed, in nanojoules.
    pub energy_nj: u128,
    /// Device time attributed, in nanoseconds × devices.
    pub gpu_ns: u128,
    /// The cost of both.
    pub cost: Cost,
}

/// Totals of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// Energy attributed, in nanojoules.
    pub energy_nj: u128,
}

/// Totals of all tenants and models.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    tenants: Capped<TenantUse>,
    models: Capped<ModelUse>,
}

impl Totals {
    pub(crate) fn new(tenants: usize, models: usize) -> Self {
        Self { tenants: Capped::new(tenants), models: Capped::new(models) }
    }

    /// Adds a settled exchange.
    pub(crate) fn add(&mut self, tenant: &Arc<str>, model: &Arc<str>, used: Pair, cost: Cost) {
        let tenant = self.tenants.of(tenant);
        tenant.energy_nj += used[ENERGY];
        tenant.gpu_ns += used[TIME];
        tenant.cost.add(cost);
        self.models.of(model).energy_nj += used[ENERGY];
    }

    pub(crate) fn tenants(&self) -> Vec<(Arc<str>, TenantUse)> {
        self.tenants.all()
    }

    pub(crate) fn models(&self) -> Vec<(Arc<str>, ModelUse)> {
        self.models.all()
    }
}

#[derive(Clone, Debug)]
struct Capped<V> {
    most: usize,
    known: BTreeMap<Arc<str>, V>,
}

impl<V: Default + Clone> Capped<V> {
    fn new(most: usize) -> Self {
        Self { most, known: BTreeMap::new() }
    }

    fn of(&mut self, name: &Arc<str>) -> &mut V {
        let name = match self.known.contains_key(name) || self.known.len() < self.most {
            true => Arc::clone(name),
            false => OTHER.into(),
        };
        self.known.entry(name).or_default()
    }

    fn all(&self) -> Vec<(Arc<str>, V)> {
        self.known.iter().map(|(name, value)| (Arc::clone(name), value.clone())).collect()
    }
}
