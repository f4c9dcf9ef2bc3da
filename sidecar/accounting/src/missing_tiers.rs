//! Service tiers, speeds and geographies that servers report and the price book lacks: their charges may be too low, so
//! the log names each once. The law: servers choose the names, so their number is limited.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use price::Rate;

/// The logged tiers, by the price book's entry.
#[derive(Default)]
pub(crate) struct MissingTiers(Mutex<BTreeSet<(Arc<str>, Box<str>)>>);

impl MissingTiers {
    /// Records that an exchange of this tier was charged by another tier's rate; returns true if it is logged now.
    pub(crate) fn record(&self, rate: &Rate, tier: &str) -> bool {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= LOGGED_MAX || !named.insert((Arc::clone(&rate.entry), tier.into())) {
            return false;
        }
        drop(named);
        let (entry, version) = (&*rate.entry, &*rate.version);
        tracing::warn!(
            entry,
            tier,
            version,
            "a server reports a service tier, speed or geography that the price book lacks: its exchanges are charged \
             without it; add it to the entry's `tiers`"
        );
        true
    }
}

/// The maximum number of logged tiers.
const LOGGED_MAX: usize = 64;
