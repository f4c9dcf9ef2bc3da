//! The ledger: one row for each exchange, in one SQLite file for each month, from which a month can be closed and
//! billed.
//!
//! Read [`row`] and [`source`] first, then `queue.rs`, `writer.rs`, `month_files.rs`, `txn.rs`: a row's way to the
//! disk.
//!
//! Laws: a row is acknowledged once it is on the disk, and is there once. A failing disk costs detail and never
//! traffic, and every loss is counted. The ledger has counts, names and money, and nothing of a prompt or an answer
//! (law 11).

mod absent_months;
pub mod adjust;
mod amend;
mod audit_event;
mod backup;
mod check;
mod close;
pub mod column;
pub mod columns;
mod continuity;
pub mod corrections;
pub mod daily_total;
#[cfg(test)]
mod damage_tests;
mod device_total;
mod difference;
pub mod digest;
mod energy;
mod error;
pub mod export;
#[cfg(test)]
mod fault_tests;
mod file;
mod files;
mod folder;
#[cfg(test)]
mod legs_tests;
mod lock;
mod loss_notes;
#[cfg(test)]
mod loss_tests;
mod lost_cost;
#[cfg(test)]
mod model_tests;
mod month_files;
mod month_part;
#[cfg(test)]
mod one_by_one_tests;
mod overflow;
mod overview;
#[cfg(test)]
mod past_tests;
mod path_problem;
pub mod period;
mod planned_corrections;
mod progress;
mod quarantine;
mod queue;
mod redirects;
mod restored;
mod retain;
pub mod row;
mod running;
mod schema;
mod seen_files;
mod ships_to;
mod sign_off;
pub mod source;
mod status;
mod store;
pub mod sums;
mod table;
mod temporary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time_zone;
pub mod total_key;
mod txn;
mod values;
mod verify;
mod writer;
mod yield_policy;

pub use adjust::{Adjustment, adjust};
pub use amend::Amendment;
pub use audit_event::AuditEvent;
pub use backup::{CopyOutcome, MonthCopy, backup, backup_with};
pub use calendar::{Calendar, UnknownZone, Zone, month};
pub use check::LACKS_LOG;
pub use close::{close, close_with};
pub use daily_total::DailyTotal;
pub use difference::Difference;
pub use energy::{Energy, EnergyRow};
pub use error::{Error, Fault};
pub use files::{beside, replace};
pub use folder::LedgerFolder;
pub use lock::writer_on_this_host;
pub use lost_cost::LostCost;
pub use overview::{Facts, Overview, Part, overview};
pub use path_problem::PathProblem;
pub use planned_corrections::PlannedCorrections;
pub use progress::{OnProgress, Progress};
pub use row::Row;
pub use running::{Clock, Ledger, MayForget, Plan, now_us, start};
pub use sign_off::{MonthSums, SignOff, utc};
pub use source::{Closure, Range, Source, SourceError};
pub use status::Status;
pub use store::Store;
pub use sums::{GpuSums, Sums};
pub use total_key::{Class, TotalKey};
pub use verify::{Verdict, line_difference, verify, verify_with};
