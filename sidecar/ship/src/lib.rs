//! The ledger's rows to a central PostgreSQL, and reports from there.
//!
//! Laws: a row is sent at least once and kept once, by its exchange's id; a store that is slow or gone
//! costs nothing but lag, for as long as the ledger keeps the rows.
