//! Where a frame stands in its body, for whoever edits the body. Offsets count the body's bytes
//! from its beginning, however it was cut into slices.

/// The place of one frame, and of the usage in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where the frame begins. Of an SSE block: its first line that is not a comment.
    pub from: u64,
    /// Where it ends. Of an SSE block: after the blank line, less the LF if that ended in CRLF.
    pub to: u64,
    /// False for a frame that the end of the body cut short.
    pub whole: bool,
    /// It holds a usage object and no error, beside an empty list of answers or (LiteLLM) one answer
    /// with a number and an empty delta: what `stream_options.include_usage` adds to a stream.
    pub is_usage: bool,
    /// Where its usage member stands, from the key's quote to the value's closing brace. Known
    /// only if [`Scanner::locate_usage`](crate::Scanner::locate_usage) was asked for.
    pub usage: Option<(u64, u64)>,
    /// The places of what `timings_per_token` brings (llama.cpp), known under the same condition.
    pub timings: Option<Timings>,
}

/// The members that `timings_per_token` brings into a frame, and those that repeat it for a client that asked for `verbose`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The member `timings`.
    pub member: Option<(u64, u64)>,
    /// The member `__verbose.timings`.
    pub verbose: Option<(u64, u64)>,
    /// The value of `__verbose.generation_settings.timings_per_token`, if it is `true`.
    pub setting: Option<(u64, u64)>,
}
