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

/// Upper edges of the energy of an output token, in nanojoules.
pub const PER_TOKEN_NJ: [u64; 11] = [
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
    100_000_000_000,
];

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
    /// Energy of an output token, by exchange: not cumulated, the last bucket open.
    pub per_token: [u64; PER_TOKEN_NJ.len() + 1],
    /// Sum of what `per_token` counted, in nanojoules.
    pub per_token_nj: u128,
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

    /// An exchange was settled; `knows_energy` says whether its energy is known.
    pub(crate) fn add(
        &mut self,
        (tenant, model): (&Arc<str>, &Arc<str>),
        used: Pair,
        cost: Cost,
        output_tokens: u64,
        knows_energy: bool,
    ) {
        let tenant = self.tenants.of(tenant);
        tenant.energy_nj += used[ENERGY];
        tenant.gpu_ns += used[TIME];
        tenant.cost.add(cost);
        let model = self.models.of(model);
        model.energy_nj += used[ENERGY];
        if knows_energy && output_tokens > 0 {
            let each = used[ENERGY] / u128::from(output_tokens);
            model.per_token[PER_TOKEN_NJ.partition_point(|edge| u128::from(*edge) < each)] += 1;
            model.per_token_nj += each;
        }
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
