//! HTTP/1.1, by the framing of the crate `http1`.
//!
//! One task serves the client's connection and the upstream's, without a timer: the sweep ends idle connections. Heads
//! keep their spelling, chunks that need no change are forwarded as they came, and nothing is buffered unless a socket
//! takes no more bytes, or a decision depends on the whole body.

mod connection;
mod down;
mod fields;
mod request;
mod up;

pub(crate) use self::connection::{Outcome, serve};
pub(crate) use self::up::Http1Up;
