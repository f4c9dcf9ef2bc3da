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
        let frame = std::mem::take(&mut self.frame);
        let weight = if let Some(running) = frame.running {
            let before = self.running.unwrap_or(0);
            self.running = Some(running.max(before));
            FrameWeight { tokens: running.saturating_sub(before), exact: true }
        } else {
            match frame.tokens {
                Some(tokens) if tokens > 0 => FrameWeight { tokens: u64::from(tokens), exact: true },
                _ if frame.content => FrameWeight { tokens: 1, exact: false },
                _ => return None,
            }
        };
        (weight.tokens > 0).then_some(weight)
    }
}
