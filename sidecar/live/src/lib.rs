//! The current numbers and those of the last day, for the live page and `tokenmeter top`: what users get and what it costs.
//!
//! The types are the JSON of the admin listener, written by it and read by `tokenmeter top`. Units are in the members'
//! names; `null` means not known, which differs from 0. A [`Recorder`] makes them from samples of the metrics:
//!
//! ```text
//! metrics::Snapshot ─ each second ─▶ Recorder ─▶ Now
//!                                       └─ rings ─▶ History
//! ```

// The types.
pub mod curve;
mod engine;
mod gpu;
mod history;
mod meter;
mod now;
mod objective;
mod point;
mod recent;
mod scope;
mod spend;

// Their making.
mod counts;
mod parts;
mod recorder;
mod ring;
mod rows;
mod track;

pub use engine::{Engine, Upstream};
pub use gpu::{Energy, Gpu};
pub use history::{History, Step};
pub use meter::{LedgerState, MeterCost};
pub use now::{Now, Readiness};
pub use objective::Objective;
pub use point::Point;
pub use recent::Recent;
pub use recorder::{HISTORY_MAX_BYTES, HISTORY_SCOPES, Recorder};
pub use scope::{Budget, Scope, Totals};
pub use spend::{DailySpend, IncludedSpend, MonthSpend, TenantSpend};
