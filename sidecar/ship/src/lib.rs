//! Ships the ledger's rows to a central PostgreSQL, and reads reports from there.
//!
//! Laws: a row is sent at least once and kept once, by its exchange's id; a slow or missing store causes only
//! lag, for as long as the ledger keeps the rows; a password is sent to its server only and never shown.

pub mod address;
mod central;
mod columns;
mod connect;
mod error;
mod forget;
mod schema;
mod send;
mod shipper;
mod status;
mod values;

#[cfg(test)]
mod tests;

pub use address::{Address, redact};
pub use central::{Amender, Central, TenantSpend, Verdict, close};
pub use error::{Reason, ShipError};
pub use forget::forget;
pub use shipper::{Plan, Shipper, StatusReader, start};
pub use status::{FileStatus, Status};
