//! Usage events of a ledger to a receiver, also to one that misbehaves. The law of all tests: the receiver gets the
//! event of each exchange, under an id that never changes.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

mod book;
mod delivery;
mod document;
mod faults;
mod receiver;
