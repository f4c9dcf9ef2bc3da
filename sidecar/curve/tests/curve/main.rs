//! The curve, from a page to what is printed.

#![expect(
    clippy::unwrap_used,
    reason = "in a test a panic is the report; clippy knows only #[test] functions"
)]

mod golden; // a real page, printed three ways
mod page; // our own page, made of exchanges that are known
mod refused; // pages that give no curve
