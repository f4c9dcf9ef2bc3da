//! Statements: what a tenant is charged in a month, as one HTML page for printing and a CSV beside it.
//!
//! Laws: each number is one of the report that `tokenmeter spend --billed MONTH` makes; a closed month always gives the
//! same bytes; the page has no script, loads nothing, and its names are harmless.

mod amount;
mod chart;
mod page;
mod statement;
mod style;

pub use statement::{Bill, Statement};

#[cfg(test)]
mod tests;
