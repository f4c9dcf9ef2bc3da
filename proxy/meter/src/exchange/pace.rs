//! The speed of the stream: gaps, positions and stalls.

use crate::edges::{POSITION, POSITION_NAMES};
use crate::gaps::GapHistogram;
use crate::record::Span;
use crate::track::{Gap, TokenFrame};

/// The gaps between the frames with tokens of each timed choice.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The longest gaps by token and by frame.
    pub(super) longest_token_gap_ns: u64,
    pub(super) longest_gap_ns: u64,
    /// The other frames, once there is one.
    several: Option<Box<Several>>,
    /// The gaps of frames with one token, most of all: by token and by frame.
    single: GapHistogram,
    pub(super) position: [Span; POSITION_NAMES.len()],
}

/// The gaps of frames with several tokens.
#[derive(Debug, Default)]
struct Several {
    by_token: GapHistogram,
    by_frame: GapHistogram,
}

/// The silent gaps above a limit.
#[derive(Debug)]
pub(super) struct Stalls {
    pub(super) limit_ns: u64,
    pub(super) ns: u64,
    pub(super) count: u32,
}

impl Pace {
    /// Adds a frame, which came after this gap.
    pub(super) fn add(&mut self, frame: TokenFrame, gap: Gap) {
        let each = match frame.tokens {
            1 => self.single.add(gap.ns, 1),
            tokens => {
                let several = self.several.get_or_insert_default();
                several.by_frame.add(gap.ns, 1);
                several.by_token.add(gap.ns, tokens)
            }
        };
        self.longest_gap_ns = self.longest_gap_ns.max(gap.ns);
        self.longest_token_gap_ns = self.longest_token_gap_ns.max(each);
        let span = &mut self.position[POSITION.partition_point(|&end| end < frame.reached)];
        span.tokens = span.tokens.saturating_add(frame.tokens);
        span.ns = span.ns.saturating_add(gap.ns);
    }

    /// The gaps by token.
    pub(super) fn inter_token(&self) -> GapHistogram {
        self.several.as_ref().map_or(self.single, |several| self.single.and(&several.by_token))
    }

    /// The gaps by frame.
    pub(super) fn chunk_gap(&self) -> GapHistogram {
        self.several.as_ref().map_or(self.single, |several| self.single.and(&several.by_frame))
    }
}

impl Stalls {
    /// No stall yet. A gap of more than `limit_ns` will be one.
    pub(super) fn above(limit_ns: u64) -> Self {
        Self { limit_ns, ns: 0, count: 0 }
    }

    /// Adds `silent_ns` if it is a stall.
    pub(super) fn add(&mut self, silent_ns: u64) {
        if silent_ns > self.limit_ns {
            self.count += 1;
            self.ns = self.ns.saturating_add(silent_ns);
        }
    }
}
