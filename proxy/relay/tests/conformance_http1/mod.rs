//! The tests that must pass on all wires with an HTTP/1.1 server only: an HTTP/2 server has other connections
//! (`http2_upstream`), frames in the place of `Content-Length` and chunks, lower-case names and no reason phrases.

mod framing;
mod leaving;
mod reuse;
mod unreachable;

use crate::support::Proxy;
