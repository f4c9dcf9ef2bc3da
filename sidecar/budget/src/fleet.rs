//! The totals of a central store, to which all sidecars ship. For each day they have the part of this process and the
//! total, so that its own spend is not counted twice. Of its own part the larger value counts: its own charges, or the
//! part that arrived in the store (own charges are ahead until shipped, and behind only if the ledger was lost). The
//! part of all others is added.

use std::sync::Arc;

/// The central store's totals of one tenant and day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The day, since 1970-01-01.
    pub day: i32,
    /// The part of this process, pico-units. A store that does not know it must not be queried: with 0 here, shipped
    /// charges would count twice.
    pub ours: i128,
    /// The total of all processes, including this one, pico-units.
    pub all: i128,
}
