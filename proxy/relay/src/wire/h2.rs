//! HTTP/2 on the connections of one request.

pub(crate) mod up;
