//! Requests at a collector, and the outcome of every item.

#![expect(clippy::unwrap_used, reason = "all of it is a test; the lint spares only functions marked so")]

// A crate shared by the tests of several crates.
use ::collector::faithful as collector;

mod exchanges;
mod fault;
mod plans;

mod exact;
mod faults;
mod logs;
mod metric;
mod official;
mod registry;
mod retry;
mod secure;
mod spans;
mod wire;
