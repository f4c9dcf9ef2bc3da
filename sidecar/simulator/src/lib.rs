//! A simulated inference server and a load driver, deterministic by seed.
//!
//! [`server`] implements HTTP/1.1 in the shape of a real server, byte for byte where recordings exist:
//! key order, nulls, and which events share a chunk. [`speed`] models its speed,
//! [`faults`] its faults, and [`load`] runs clients and measures what they receive. The demo,
//! the end-to-end tests and the benches use these four.
//!
//! The law: equal seeds and equal requests give equal responses, at any load and speed, streamed or
//! not. Only time varies, and time comes from the speed model.

pub mod faults;
pub mod load;
pub mod random;
pub mod server;
pub mod speed;
pub mod text;

mod batch;
mod counters;
mod params;
mod reply;
mod script;
mod shape;
mod socket;

/// The request field and header that only this server knows.
pub use params::{SIMULATE_FIELD, SIMULATE_HEADER};
