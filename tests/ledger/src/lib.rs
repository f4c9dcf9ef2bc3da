//! Rows that are known before they are written, and the audit of what became of them. The law the
//! tests hold the ledger to: what was acknowledged is there once, as it was, and the totals are the
//! sums of what is there.

pub mod audit;
pub mod months;
pub mod rows;
