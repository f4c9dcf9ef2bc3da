//! The tests that every engine must pass with an HTTP/1.1 server only: an HTTP/2 server has other connections
//! (`http2_upstream`), frames in the place of `Content-Length` and chunks, lower-case names and no reason phrases. The
//! parent module selects the engine.

mod framing;
mod reuse;
mod unreachable;

/// The proxy on the engine under test.
type Proxy = crate::support::ProxyOn<super::UnderTest>;
