//! Service tiers that servers speak of and the price book has no prices for: what is charged for them may
//! be too little, so the log names each once. The law: servers choose these words, so only so many are
//! kept.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use price::Rate;

/// Tiers that were named, by the price book's entry.
#[derive(Default)]
pub(crate) struct Tiers(Mutex<BTreeSet<(Arc<str>, Box<str>)>>);

impl Tiers {
    /// An exchange of this tier was charged by a rate that is not the tier's. Whether the log says so now.
    pub(crate) fn missed(&self, rate: &Rate, tier: &str) -> bool {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() >= NAMED || !named.insert((Arc::clone(&rate.entry), tier.into())) {
            return false;
        }
        drop(named);
        let (entry, version) = (&*rate.entry, &*rate.version);
        tracing::warn!(
            entry,
            tier,
            version,
            "a server says a service tier that the price book has no prices for: its exchanges are charged as \
             ordinary ones; add it under the entry's `tiers`"
        );
        true
    }
}

/// Tiers that the log names.
const NAMED: usize = 64;
