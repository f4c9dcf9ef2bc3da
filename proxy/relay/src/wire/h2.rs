//! HTTP/2: streams of clients, which hyper's server has, and streams to upstreams, by the crate h2.

mod down;
pub(crate) mod stream;
pub(crate) mod up;
