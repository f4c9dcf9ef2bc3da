//! What a central store says of all who spend. It says of each day what it has of us and what it
//! has of everybody, so that ours is not counted twice: of ourselves the larger counts, what we
//! charged or what arrived there (ours is ahead until it is shipped, and behind only where our own
//! ledger was lost); to that comes everybody else's.

use std::sync::Arc;

/// What a central store has of one tenant and day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The day, since 1970-01-01.
    pub day: i32,
    /// What it has from us, pico-units; 0 if it cannot tell whose is whose, and then what we
    /// shipped counts twice, so a store that cannot must not be asked.
    pub ours: i128,
    /// What it has from all, us among them, pico-units.
    pub all: i128,
}
