//! GPU use without an exchange.

use std::sync::Arc;

use crate::sums::GpuSums;

/// The use of one GPU on one day that belongs to no known exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTotal {
    /// Days since 1970-01-01, by the ledger's calendar.
    pub day: i32,
    /// The GPU, as OpenTelemetry's `hw.id`.
    pub hw_id: Arc<str>,
    /// The reason why it belongs to no exchange.
    pub share: Share,
    /// The energy, the time and their cost.
    pub sums: GpuSums,
}

meter::listed_enum! {
    /// The reason why GPU time and energy belong to no exchange.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Share {
        /// No exchange was in flight.
        Idle = "idle",
        /// The exchange is not known: its record was lost.
        Unattributed = "unattributed",
    }
    /// Returns the word in the store.
    pub fn name(self);
}

impl Share {
    /// Returns the word in a report, in the place of a tenant or a model.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Idle => "__idle__",
            Self::Unattributed => "__unattributed__",
        }
    }
}
