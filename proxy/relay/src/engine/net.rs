//! Sockets and deadlines, common to all engines.

pub(crate) mod body_waker;
pub(crate) mod client;
pub(crate) mod client_stream;
pub(crate) mod deadlines;
pub(crate) mod header_list;
pub(crate) mod idle;
pub(crate) mod pace;
pub(crate) mod pool;
pub(crate) mod read_budget;
pub(crate) mod shared_pool;
pub(crate) mod socket;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod stream_rest;
pub(crate) mod tls;
pub(crate) mod tunnel;
#[cfg(test)]
pub(crate) mod wake_count;
pub(crate) mod write_progress;
