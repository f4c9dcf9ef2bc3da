//! Tests of properties that only HTTP/1.1 has, on the wires with it. HTTP/2 shares connections (`conformance_http2`), and
//! has frames in place of chunks, lower-case names and no reason phrases.

mod forwarding;
mod framing;
mod leaving;
mod reuse;
mod unreachable;
mod unsent;

use crate::support::Proxy;
