//! The totals of a central store, which all sidecars ship to. For each day it has our part and the
//! total, so that our own spend is not counted twice. Of our part the larger counts: our own
//! charges or what arrived there (our own are ahead until shipped, and behind only if our ledger was
//! lost). The part of all others is added.

use std::sync::Arc;

/// The central store's totals of one tenant and day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The day, since 1970-01-01.
    pub day: i32,
    /// The part of this process, pico-units. A store that cannot tell it must not be queried: with 0 here,
    /// our shipped charges would count twice.
    pub ours: i128,
    /// The total of all processes, including this one, pico-units.
    pub all: i128,
}
