//! A simulated inference server and a load driver, deterministic by seed.
//!
//! [`server`] implements HTTP/1.1 in the shape of a real server, byte for byte where recordings exist:
//! key order, nulls, and which events share a chunk. [`speed`] models its speed, and [`load`] runs
//! clients and measures what they receive. The demo, the end-to-end tests and the benches use these three.
//! Tests serve connections in a way of their own, in which responses break off, and add another [`shape`].
//!
//! The law: equal seeds and equal requests give equal responses, at any load and speed, streamed or
//! not. Only time varies, and time comes from the speed model.

pub mod batch;
pub mod load;
pub mod params;
pub mod random;
pub mod reply;
pub mod script;
pub mod server;
pub mod shape;
pub mod speed;
pub mod text;

mod counters;
