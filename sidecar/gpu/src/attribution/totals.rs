//! What the attributed energy, time and money add up to: by tenant and by model.
//!
//! The law: a name is somebody else's text. There are only so many labels; who comes later is
//! `_other`, and nothing that was attributed is missing from the sum.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::money::Cost;
use super::{ENERGY, Pair, TIME};

/// What those are together that have no label of their own.
pub const OTHER: &str = "_other";

/// One tenant's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantUse {
    /// Energy attributed, in nanojoules.
    pub energy_nj: u128,
    /// Device time attributed, in nanoseconds × devices.
    pub gpu_ns: u128,
    /// What both cost.
    pub cost: Cost,
}

/// One model's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// Energy attributed, in nanojoules.
    pub energy_nj: u128,
}

/// All tenants' and models'.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    tenants: Capped<TenantUse>,
    models: Capped<ModelUse>,
}

impl Totals {
    pub(crate) fn new(tenants: usize, models: usize) -> Self {
        Self { tenants: Capped::new(tenants), models: Capped::new(models) }
    }

    /// An exchange was settled.
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
