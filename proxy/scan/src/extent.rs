//! The position of a frame in its body, for an editor of the body. Offsets count from the start of the body,
//! for any slicing.

/// The position of one frame, and of the usage in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The start of the frame. In an SSE block: its first line that is not a comment.
    pub from: u64,
    /// The end of the frame. In an SSE block: after the blank line, without the LF if that ended in CRLF.
    pub to: u64,
    /// False for a frame cut short by the end of the body.
    pub whole: bool,
    /// True if it is a frame of a stream and holds a usage object and no error, beside an empty list of answers, one answer
    /// with an index and an empty delta (LiteLLM), or an `object` and no list (ATOM): the frame that
    /// `stream_options.include_usage` adds.
    pub is_usage: bool,
    /// The usage member. One with counts is absent from a frame in the shape of the last one, except after
    /// [`Scanner::locate_usage`](crate::Scanner::locate_usage).
    pub usage: Option<UsageMember>,
    /// The members that `timings_per_token` adds (llama.cpp); present under the same condition.
    pub timings: Option<Timings>,
}

/// The usage member of a frame. Without its range, with a comma in it, the rest of the frame is that of a server that
/// does not send the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageMember {
    /// Its start: the comma before it, or the quote of its key if no member is before it.
    pub from: u64,
    /// Its end: that of its value, or the next key if no member is before it.
    pub to: u64,
    /// Its value.
    pub value: UsageValue,
}

/// The value of a usage member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageValue {
    /// `null`: OpenAI, in each frame before the counts.
    Null,
    /// An object with counts, all of them zero: Ollama, in each frame before the counts.
    Zeros,
    /// Any other object.
    Counts,
}

/// The members that `timings_per_token` adds to a frame, and those that repeat it for a client that
/// requested `verbose`; each is a range as in [`UsageMember`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The member `timings`.
    pub member: Option<(u64, u64)>,
    /// The member `__verbose.timings`.
    pub verbose: Option<(u64, u64)>,
    /// The value of `__verbose.generation_settings.timings_per_token`, if it is `true`.
    pub setting: Option<(u64, u64)>,
}
