//! The ledger: one row for each exchange, kept so that a month can be closed on it.
//!
//! Laws: a row is acknowledged when it is on the disk, and then it is there once; a disk that fails
//! costs detail and never traffic, and what is lost is counted; the ledger holds counts, names and
//! money, never text (law 11); only this crate writes to the disk.

mod energy;
mod failure;
pub mod feed;
mod file;
mod files;
mod key;
pub mod line;
pub mod month;
pub mod report;
pub mod row;
mod schema;
mod store;
mod table;
mod values;

pub use energy::EnergyRow;
pub use failure::{Failure, Fault};
pub use line::{Class, Line};
pub use row::Row;
pub use store::Store;
