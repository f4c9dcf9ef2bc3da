//! HTTP/1.1 on tokio's sockets, behind the feature `spike-engine`: a trial, which is measured, and in no package.
//!
//! One task serves the client's connection and the upstream's, without a timer: the sweep ends idle connections. Heads
//! keep their spelling, chunks that need no change are forwarded as they came, and nothing is buffered unless a socket
//! takes no more bytes, or a decision depends on the whole body. Hyper's server reads and writes the connections of
//! clients that use HTTP/2, for [`wire::h2`](super::h2).

mod connection;
mod down;
mod fields;
mod request;
mod up;
pub(crate) mod upstream_socket;
mod writer;

pub(crate) use self::connection::{serve_connection, sweep};
pub(crate) use self::up::Http1Up;
