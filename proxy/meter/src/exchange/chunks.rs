//! The chunks of the answer: its frames other than keep-alives and the end mark, whatever they hold.

use crate::Tick;
use crate::edges::DURATION_S;
use crate::gaps::{nanoseconds, place};
use crate::record::Gaps;

/// Bucket edges in nanoseconds.
const EDGES_NS: [u64; DURATION_S.len()] = nanoseconds(DURATION_S);

/// The ticks of the chunks, and the gaps between them.
#[derive(Debug)]
pub(super) struct Chunks {
    /// The first one; it may not have ended.
    pub(super) first: Tick,
    /// The end of the last one.
    last: Option<Tick>,
    /// True if the current frame is one.
    is_open: bool,
    /// From the end of each to the end of the next.
    buckets: [u32; EDGES_NS.len() + 1],
    sum_ns: u64,
}

impl Chunks {
    /// Returns the chunks of a stream whose first one begins at `first`.
    pub(super) fn new(first: Tick) -> Self {
        Self { first, last: None, is_open: false, buckets: [0; EDGES_NS.len() + 1], sum_ns: 0 }
    }

    /// Records that the current frame is a chunk.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.is_open = true;
    }

    /// Ends the current frame.
    #[inline]
    pub(super) fn end_frame(&mut self, at: Tick) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        if let Some(last) = self.last.replace(at) {
            let ns = at.since(last);
            let bucket = &mut self.buckets[place(&EDGES_NS, ns)];
            *bucket = bucket.saturating_add(1);
            self.sum_ns = self.sum_ns.saturating_add(ns);
        }
    }

    /// The gaps so far.
    pub(super) fn gaps(&self) -> Gaps<{ EDGES_NS.len() + 1 }> {
        Gaps { buckets: self.buckets.map(u64::from), sum_ns: self.sum_ns }
    }
}

#[cfg(test)]
mod tests {
    use scan::{Dialect, Event, Scope};

    use crate::tests::{CLEAN, Fixture, MS, stop, text, usage};

    /// The convention's time per output chunk: for every frame after the first that a client receives as a chunk.
    #[test]
    fn gaps_of_chunks_are_those_of_all_frames() {
        let mut fixture = Fixture::new(Dialect::OpenaiChat);
        fixture
            .frame(200, &[Event::Role { choice: 0 }])
            .frame(205, &[Event::Ping])
            .frame(210, &[text(0)])
            .frame(231, &[text(0)])
            .frame(231, &[stop(0)])
            .frame(400, &[usage(Scope::Whole, 1, 2)])
            .frame(401, &[Event::Done]);
        let timing = fixture.end(CLEAN, 401).timing;
        assert_eq!(timing.pace().chunk_gap.count(), 1);
        // 10 ms, an edge of the first bucket; 21; 0; 169.
        assert_eq!(timing.pace().output_chunk.buckets[..6], [2, 0, 1, 0, 0, 1]);
        assert_eq!((timing.pace().output_chunk.count(), timing.pace().output_chunk.sum_ns), (4, 200 * MS));
    }
}
