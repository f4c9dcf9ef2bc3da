//! HTTP/1.1, with the parser of the crate `http1`.
//!
//! One task serves the client's connection and the upstream's, without a timer: the sweep ends idle connections. Field names
//! keep their spelling, and canonical chunks are forwarded unchanged. Bytes are buffered only if a socket takes no more, or
//! if a decision depends on the whole body.

mod connection;
mod down;
mod fields;
mod request;
mod up;

pub(crate) use self::connection::{Outcome, serve};
pub(crate) use self::up::Http1Up;
