//! The progress of one choice: its tokens so far by each source, and the ticks of its first and last.

use crate::Tick;

/// The progress of one choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// Tick of the first token.
    pub(crate) first: Option<Tick>,
    /// Tick of the last token.
    pub(crate) last: Tick,
    /// Client wait until the last token, nanoseconds.
    pub(crate) client_wait_ns: u64,
    /// Tokens by frame weight.
    pub(crate) weight: u64,
    /// The server's own running count.
    pub(crate) running: Option<u64>,
    /// The facts of the current frame about this choice.
    pub(crate) frame: FrameFacts,
}

/// The facts of one frame about one choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameFacts {
    /// True if it has content.
    pub(crate) content: bool,
    /// Tokens by ids or log probabilities.
    pub(crate) tokens: Option<u32>,
    /// The running count.
    pub(crate) running: Option<u64>,
}

/// The tokens in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameWeight {
    /// Their number.
    pub(crate) tokens: u64,
    /// True if the frame itself has the number.
    pub(crate) exact: bool,
}

impl Track {
    /// Ends the frame for this choice. Returns its tokens, if any.
    pub(crate) fn end_frame(&mut self) -> Option<FrameWeight> {
        let mut frame = std::mem::take(&mut self.frame);
        // LiteLLM sends a usage of zeros beside content; a server that counts at all counts content.
        frame.running = frame.running.filter(|&running| running > 0 || !frame.content);
        // A first running count after frames weighed by other means does not describe its own frame:
        // llama.cpp sends one with the finish, for everything before it.
        let late = self.running.is_none() && self.weight > 0;
        let before = self.running.unwrap_or(0);
        self.running = frame.running.map(|running| running.max(before)).or(self.running);
        let weight = match (frame.running.filter(|_| !late), frame.tokens) {
            (Some(running), _) => FrameWeight { tokens: running.saturating_sub(before), exact: true },
            (None, Some(tokens)) if tokens > 0 => FrameWeight { tokens: u64::from(tokens), exact: true },
            (None, _) if frame.content => FrameWeight { tokens: 1, exact: false },
            _ => return None,
        };
        (weight.tokens > 0).then_some(weight)
    }
}
