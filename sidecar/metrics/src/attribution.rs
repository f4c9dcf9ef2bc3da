//! The energy, time and cost of the accelerators that tenants and models used. The crate `gpu` computes them exactly;
//! here they are only exported, under labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::names::OTHER;

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

    fn add(&mut self, other: &Self) {
        self.energy_joules += other.energy_joules;
        self.gpu_seconds += other.gpu_seconds;
        for (mine, theirs) in self.cost_usd.iter_mut().zip(other.cost_usd) {
            if let Some(usd) = theirs {
                *mine = Some(mine.unwrap_or_default() + usd);
            }
        }
    }
}

/// The shares of tenants or of models.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    pub(crate) by_label: BTreeMap<Arc<str>, Share>,
    /// The shares counted under `_other` while their names had no label, by name. They stay there, because a counter
    /// never decreases.
    overflow: BTreeMap<Arc<str>, Share>,
}

impl Shares {
    /// Replaces the shares, under the current labels of their names. Several of one name are summed.
    pub(crate) fn set<'a>(
        &mut self,
        shares: impl Iterator<Item = (&'a Arc<str>, Share)>,
        label: impl Fn(&str) -> Arc<str>,
    ) {
        self.by_label.clear();
        for (name, share) in shares {
            let label = label(name);
            if *label == *OTHER && **name != *OTHER {
                self.overflow.insert(Arc::clone(name), share);
            }
            let own = match self.overflow.get(name) {
                Some(moved) if *label != *OTHER => {
                    self.by_label.entry(OTHER.into()).or_default().add(moved);
                    share.minus(moved)
                }
                _ => share,
            };
            self.by_label.entry(label).or_default().add(&own);
        }
    }
}

/// Label values of `part`.
pub const COST_PARTS: [&str; 2] = ["hours", "energy"];
