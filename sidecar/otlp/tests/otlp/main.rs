//! What arrives at a collector, and what becomes of what does not.

#![expect(clippy::unwrap_used, reason = "all of it is a test; the lint spares only functions marked so")]

// A room of the tests of several crates; here it has one name.
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
