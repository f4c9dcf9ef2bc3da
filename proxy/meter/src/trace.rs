//! The position of an exchange in a distributed trace, as plain values. `relay` parses and writes W3C Trace
//! Context; the exporter makes the spans.

/// The position of an exchange in a trace (W3C Trace Context).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace's id.
    pub trace_id: [u8; 16],
    /// The caller's span; `None` if the trace starts here.
    pub parent: Option<[u8; 8]>,
    /// True if the trace is sampled, by the caller's flag or by the local sampler.
    pub sampled: bool,
    /// The spans to export; `None` if there are none.
    pub spans: Option<Spans>,
    /// `tracestate` as received, at most 512 bytes; empty without one.
    pub state: Box<str>,
}

/// An exchange's two spans: their ids, and what the first has of the client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// The request as the proxy serves it: kind SERVER, child of [`Trace::parent`].
    pub server: [u8; 8],
    /// The inference request to the upstream: kind CLIENT, child of [`Spans::server`], and the parent that
    /// the upstream sees, where it is propagated.
    pub client: [u8; 8],
    /// The method of the request.
    pub method: &'static str,
    /// True if the client's connection has TLS.
    pub is_tls: bool,
}
