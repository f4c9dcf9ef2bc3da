//! Reports: the spend of each tenant, by model and price, with the provenance of its counts.
//!
//! Laws: money of two currencies is never added; a report notes its omissions; sums come from daily totals if possible,
//! and equal those from rows.

#[cfg(test)]
mod adjustment_tests;
mod allocation;
pub mod attributes;
#[cfg(test)]
mod billed_tests;
mod cell;
pub mod column;
mod contributions;
mod first_prices;
#[cfg(test)]
mod first_prices_tests;
pub mod focus;
#[cfg(test)]
mod gone_tests;
pub mod group;
pub mod json;
pub mod key;
pub mod months;
pub mod notes;
pub mod query;
mod repeats;
mod reprice;
pub mod savings;
pub mod sheet;
mod statement_number;
pub mod sums;
pub mod table;
pub mod units;
pub mod what_if;

pub use attributes::Attributes;
pub use column::Column;
pub use group::{Group, Report, make};
pub use key::{Key, Value};
pub use query::{Basis, Filter, Idle, Order, Query};
pub use reprice::{Change, Outcome, Reprice, rehearse, reprice, reprice_by};
pub use statement_number::statement_number;
pub use what_if::WhatIf;

#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;
