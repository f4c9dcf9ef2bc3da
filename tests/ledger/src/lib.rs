//! Rows that are known before they are written, and their audit. The law of the ledger's tests: an acknowledged row is
//! there once, unchanged, and the totals are the sums of the rows.

pub mod audit;
pub mod months;
pub mod rows;
