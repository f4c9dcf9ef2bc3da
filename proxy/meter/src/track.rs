//! One answer's progress: its tokens so far by each source, and the ticks of its first and last.

use crate::Tick;

/// What is known of one choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    /// Tick of the first token; `None` before it.
    pub(crate) first: Option<Tick>,
    /// Tick of the last token.
    pub(crate) last: Tick,
    /// Client wait so far when the last token came.
    pub(crate) waited: u64,
    /// Tokens by frame weight.
    pub(crate) weight: u64,
    /// The server's own running count.
    pub(crate) running: Option<u64>,
    /// What the frame at hand says of this choice.
    pub(crate) frame: InFrame,
}

/// What one frame says of one choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFrame {
    /// There is content.
    pub(crate) content: bool,
    /// Tokens by ids or log probabilities.
    pub(crate) tokens: Option<u32>,
    /// The running count.
    pub(crate) running: Option<u64>,
}

/// The tokens in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameWeight {
    /// How many.
    pub(crate) tokens: u64,
    /// Whether the frame itself says so.
    pub(crate) exact: bool,
}

impl Track {
    /// Ends the frame for this choice: how many tokens it brought; `None` if none.
    pub(crate) fn end_frame(&mut self) -> Option<FrameWeight> {
        let mut frame = std::mem::take(&mut self.frame);
        // LiteLLM puts a usage of zeros beside content; whoever counts at all counts that.
        frame.running = frame.running.filter(|&running| running > 0 || !frame.content);
        // The first running count, if it comes after frames weighed otherwise, says nothing of the
        // frame it stands in: llama.cpp sends one with the finish, for all that went before.
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
