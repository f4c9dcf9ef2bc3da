//! Connections below HTTP: sockets of clients and upstreams, their TLS, their pools, and the speed of their peers.

pub(crate) mod client;
pub(crate) mod client_stream;
pub(crate) mod idle;
pub(crate) mod pace;
pub(crate) mod pool;
mod proxy_header;
pub(crate) mod shared_pool;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod stream_rest;
mod task;
pub(crate) mod tls;
pub(crate) mod tunnel;
pub(crate) mod upstream_socket;
pub(crate) mod write_progress;
