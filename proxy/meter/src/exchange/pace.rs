//! The speed of the stream: gaps, positions and stalls.

use crate::edges::{POSITION, POSITION_NAMES};
use crate::gaps::GapHistogram;
use crate::record::Span;
use crate::track::{Gap, TokenFrame};

/// The gaps between the frames with tokens of each timed choice.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Gaps by token, and the longest.
    pub(super) inter_token: GapHistogram,
    pub(super) longest_token_gap_ns: u64,
    /// Gaps by frame, and the longest.
    pub(super) chunk_gap: GapHistogram,
    pub(super) longest_gap_ns: u64,
    pub(super) position: [Span; POSITION_NAMES.len()],
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
        self.chunk_gap.add(gap.ns, 1);
        self.longest_gap_ns = self.longest_gap_ns.max(gap.ns);
        let each = self.inter_token.add(gap.ns, frame.tokens);
        self.longest_token_gap_ns = self.longest_token_gap_ns.max(each);
        let span = &mut self.position[POSITION.partition_point(|&end| end < frame.reached)];
        span.tokens = span.tokens.saturating_add(frame.tokens);
        span.ns = span.ns.saturating_add(gap.ns);
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
