//! An exchange's place in a distributed trace, as plain values. What W3C Trace Context says of
//! them is read and written in `relay`; what a span is, only the exporter knows.

/// Where an exchange stands in a trace (W3C Trace Context).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace's id.
    pub trace_id: [u8; 16],
    /// The span that called us; `None` if the trace begins here.
    pub parent: Option<[u8; 8]>,
    /// Whether the trace is kept, by the caller's word or by our own draw.
    pub sampled: bool,
    /// The spans of ours to be exported; `None` if none are.
    pub spans: Option<Spans>,
    /// `tracestate` as it came, at most 512 bytes; empty if there was none.
    pub state: Box<str>,
}

/// The ids of an exchange's two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// The request as we served it: kind SERVER, child of [`Trace::parent`].
    pub server: [u8; 8],
    /// The inference as we asked for it: kind CLIENT, child of [`Spans::server`], and what the
    /// upstream sees as its parent, where it is told.
    pub client: [u8; 8],
}
