//! The curve, from a page to its output.

#![expect(clippy::unwrap_used, reason = "a panic fails a test; clippy exempts only #[test] functions")]

mod golden; // a real page in three formats
mod page; // tokenmeter's own page, built from known exchanges
mod rejected; // pages without curves
