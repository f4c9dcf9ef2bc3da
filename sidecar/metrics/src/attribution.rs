//! The attribution of the accelerators' energy, time and cost. Invariant: attributed, idle, unattributed and
//! pending sum to the total. The crate `gpu` computes the shares exactly; here they are only exported.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::names::OTHER;

/// The attribution since the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributionReading {
    /// The shares by tenant. Several of one name are summed.
    pub tenants: Vec<TenantShare>,
    /// The attributed energy by model. Several of one name are summed.
    pub models: Vec<ModelShare>,
    /// The shares of the devices that belong to no exchange.
    pub devices: Vec<DeviceShare>,
    /// Exchanges settled without their share, because their notice came too late or the queue was full.
    pub lost: u64,
}

/// One tenant's share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantShare {
    /// The tenant.
    pub tenant: Arc<str>,
    /// Joules, device seconds and dollars.
    pub share: Share,
}

/// One model's share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelShare {
    /// The model's label, as of [`Metrics::model_label`](crate::Metrics::model_label).
    pub model: Arc<str>,
    /// Joules.
    pub energy_joules: f64,
}

/// The share of one device that belongs to no exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceShare {
    /// The device's identity.
    pub id: Arc<str>,
    /// The share while no exchange was in flight.
    pub idle: Share,
    /// The share of work that belongs to no known exchange.
    pub unattributed: Share,
    /// Joules of exchanges in flight or not settled.
    pub pending_joules: f64,
    /// Device seconds of exchanges in flight or not settled.
    pub pending_seconds: f64,
}

/// An amount of energy, device time and money.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Joules.
    pub energy_joules: f64,
    /// Device seconds.
    pub gpu_seconds: f64,
    /// US dollars, in the order of [`COST_PARTS`]; `None` where no price is set.
    pub cost_usd: [Option<f64>; COST_PARTS.len()],
}

impl Share {
    /// Returns the difference, at least 0 in each field.
    fn minus(&self, other: &Self) -> Self {
        let mut cost_usd = self.cost_usd;
        for (mine, theirs) in cost_usd.iter_mut().zip(other.cost_usd) {
            *mine = mine.map(|usd| (usd - theirs.unwrap_or_default()).max(0.0));
        }
        Self {
            energy_joules: (self.energy_joules - other.energy_joules).max(0.0),
            gpu_seconds: (self.gpu_seconds - other.gpu_seconds).max(0.0),
            cost_usd,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.energy_joules += other.energy_joules;
        self.gpu_seconds += other.gpu_seconds;
        for (mine, theirs) in self.cost_usd.iter_mut().zip(other.cost_usd) {
            if let Some(usd) = theirs {
                *mine = Some(mine.unwrap_or_default() + usd);
            }
        }
    }
}

/// The shares counted under `_other` while their names had no label, by name. They stay there, because a
/// counter never decreases.
#[derive(Debug, Default)]
pub(crate) struct OverflowShares(BTreeMap<Arc<str>, Share>);

impl OverflowShares {
    /// Splits a name's share into the part of its label and the part that stays with `_other`.
    pub(crate) fn split(&mut self, name: &Arc<str>, label: &str, share: &Share) -> (Share, Option<Share>) {
        if label == OTHER && **name != *OTHER {
            self.0.insert(Arc::clone(name), *share);
        }
        match self.0.get(name) {
            Some(moved) if label != OTHER => (share.minus(moved), Some(*moved)),
            _ => (*share, None),
        }
    }
}

/// Label values of `part`.
pub const COST_PARTS: [&str; 2] = ["hours", "energy"];
