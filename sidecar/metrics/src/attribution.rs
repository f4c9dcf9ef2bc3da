//! What the accelerators' energy, time and cost were spent on. The law: attributed, idle,
//! unattributed and pending together are all there was; it is shared out elsewhere, exactly, and
//! only printed here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::names::OTHER;

/// How everything was shared out so far, since the baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttributionReading {
    /// By tenant. Several of one name are added up.
    pub tenants: Vec<TenantShare>,
    /// By model: the attributed energy again. Several of one name are added up.
    pub models: Vec<ModelShare>,
    /// By device: what belongs to no exchange.
    pub devices: Vec<DeviceShare>,
    /// Exchanges that went on without their share, since their notice came too late or found no room.
    pub lost: u64,
}

/// What one tenant's exchanges used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantShare {
    /// The tenant.
    pub tenant: Arc<str>,
    /// Joules, device seconds and dollars.
    pub share: Share,
}

/// What one model's exchanges used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelShare {
    /// The model's label, as of [`Metrics::model_label`](crate::Metrics::model_label).
    pub model: Arc<str>,
    /// Joules.
    pub energy_joules: f64,
}

/// What of one device belongs to no exchange.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceShare {
    /// The device's identity.
    pub id: Arc<str>,
    /// While nothing ran.
    pub idle: Share,
    /// While something ran that was not ours, or that nobody can tell.
    pub unattributed: Share,
    /// Joules of exchanges that still run or are not settled.
    pub pending_joules: f64,
    /// Device seconds of exchanges that still run or are not settled.
    pub pending_seconds: f64,
}

/// A part of what was used.
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
    fn less(&self, other: &Self) -> Self {
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

/// Shares that were counted under `_other` while their names had no label, by name. They stay there: a counter
/// does not go down.
#[derive(Debug, Default)]
pub(crate) struct Moved(BTreeMap<Arc<str>, Share>);

impl Moved {
    /// The part of a name's share that is its label's, and the part that stays with `_other`.
    pub(crate) fn split(&mut self, name: &Arc<str>, label: &str, share: &Share) -> (Share, Option<Share>) {
        if label == OTHER && **name != *OTHER {
            self.0.insert(Arc::clone(name), *share);
        }
        match self.0.get(name) {
            Some(moved) if label != OTHER => (share.less(moved), Some(*moved)),
            _ => (*share, None),
        }
    }
}

/// Label values of `part`.
pub const COST_PARTS: [&str; 2] = ["hours", "energy"];
