//! Fetches and parses the metrics pages of other programs. This crate knows HTTP and Prometheus' text format, and not
//! the meaning of metric names.
//!
//! [`fetch`] fetches a page, [`exposition`] parses it.
//!
//! Invariant: a page is untrusted. For any length, speed or content, reading it takes bounded time and memory, and
//! unreadable lines are counted.

pub mod exposition;
pub mod fetch;
pub mod limits;

pub use exposition::{Page, Sample};
pub use fetch::{BearerToken, Error, Fetcher, Response};
