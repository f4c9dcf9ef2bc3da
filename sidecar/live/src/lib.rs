//! The numbers of now and of the last day, for the live page and `tokenmeter top`: what users get and what it costs.
//!
//! The types are the JSON of the admin listener, written by it and read by `tokenmeter top`. Units are in the members'
//! names; `null` means not known, which differs from 0.

mod engine;
mod gpu;
mod history;
mod meter;
mod now;
mod objective;
mod point;
mod scope;
mod spend;

pub use engine::{Engine, Upstream};
pub use gpu::{Energy, Gpu};
pub use history::{History, Step};
pub use meter::{LedgerState, MeterCost};
pub use now::{Now, Readiness};
pub use objective::Objective;
pub use point::Point;
pub use scope::{Budget, Scope, Totals};
pub use spend::{DailySpend, MonthSpend, TenantSpend};
