//! A simulated inference server and a load driver, deterministic by seed.
//!
//! [`server`] speaks HTTP/1.1 in the shape of a real server, byte for byte where recordings exist:
//! key order, nulls, which event shares a chunk with which. [`speed`] says how fast it answers,
//! [`faults`] how it misbehaves, and [`load`] plays its clients and measures what they get. A demo,
//! the end-to-end tests and the benches all stand on these four.
//!
//! The law: the same seed and the same question give the same answer, whatever the load, the speed
//! and whether it is streamed. Only time varies, and time comes from the speed model.

pub mod faults;
pub mod load;
pub mod random;
pub mod server;
pub mod speed;
pub mod text;

mod ask;
mod batch;
mod counters;
mod reply;
mod script;
mod shape;
mod socket;

/// Names and numbers of the request field and header that only this server knows.
pub use ask::{SIMULATE_FIELD, SIMULATE_HEADER};
