//! The ledger's rows to a central PostgreSQL, and reports from there.
//!
//! Laws: a row is sent at least once and kept once, by its exchange's id; a store that is slow or gone
//! costs nothing but lag, for as long as the ledger keeps the rows; a password is shown to nobody but the
//! server it is for.

pub mod address;
mod central;
mod connect;
mod error;
mod schema;
mod send;
mod shipper;
mod status;
mod values;

#[cfg(test)]
mod tests;

pub use address::{Address, redact};
pub use central::{Central, TenantSpend, Verdict};
pub use error::{Reason, ShipError};
pub use schema::DDL;
pub use shipper::{Plan, Shipper, StatusReader, start};
pub use status::{FileStatus, Status};
