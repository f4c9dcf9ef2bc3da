//! The simulated server for tests: a request header makes its response fail, a request field shapes it, and a second
//! shape imitates llama.cpp.
//!
//! [`Server`] is the server of [`simulator`] with another way to serve a connection: it reads the header and the field,
//! and plays the response itself, so that it can break off.

mod faults;
mod llamacpp;
mod play;
mod server;
mod shape;
mod simulate;
mod socket;

#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod shape_tests;

pub use server::{Options, Server};
pub use shape::Shape;
pub use simulator::server::{Counts, Handle};
