//! The ends of the objects of counts: of a usage, of one of its passes, of a part of a count.

use crate::counts::{Count, Counts};
use crate::dialect::Dialect;
use crate::field::Field;
use crate::frame::Frame;
use crate::frame::usage::{self, BESIDE_PROMPT, CACHE_WRITE_5M, OTHER_CACHE_WRITE, OTHER_CACHED};

impl Frame {
    /// Ends a part of the count `whole`: its tokens go to a count of their own, if there is one.
    pub(super) fn close_part_of(&mut self, whole: Field) {
        let count = self.facts.extra.part.and_then(|part| part.count(whole));
        let tokens = self.facts.extra.ranks[1].take();
        let Some(count) = count else { return };
        if tokens.is_some() && self.facts.counts().is_none() && !self.facts.typed.counts_inner {
            // A part may stand before the first count.
            self.facts.usage = Some(Counts::default());
        }
        let Some(counts) = self.facts.counts() else { return };
        match whole {
            Field::ToolModality => counts.add(count, tokens),
            _ => counts.set(count, tokens),
        }
    }

    /// Ends a usage object: a missing total of the tokens written to a cache is the sum of both lifetimes.
    pub(super) fn close_usage(&mut self) {
        let mut take = |rank: u8| self.facts.extra.ranks[usize::from(rank)].take();
        let (five_minutes, cached, written) =
            (take(CACHE_WRITE_5M), take(OTHER_CACHED), take(OTHER_CACHE_WRITE));
        let (beside, is_speech) = (take(BESIDE_PROMPT), self.dialect == Dialect::Transcription);
        let Some(counts) = self.facts.counts() else { return };
        usage::settle_used(counts);
        for (count, other) in [(Count::InputCached, cached), (Count::InputCacheWrite, written)] {
            counts.set(count, counts.get(count).max(other));
        }
        let both = usage::add_five_minutes(counts, five_minutes);
        if is_speech {
            usage::add_speech(counts);
        }
        if beside.is_some() {
            counts.set(Count::InputBeside, beside);
        }
        if self.dialect == Dialect::Unknown {
            // By Anthropic's names, whose prompt excludes them.
            self.facts.extra.ranks[2] = self.facts.extra.ranks[2].or(both);
        }
    }

    /// Ends the usage of the frame: of an answer in several passes, all that are billed count.
    pub(super) fn close_own_usage(&mut self) {
        self.close_usage();
        if let (Some(passes), Some(counts)) = (self.facts.passes.take(), self.facts.usage.as_mut()) {
            *counts = passes.total(counts);
        }
    }

    /// Ends one pass of an answer.
    pub(super) fn close_pass(&mut self) {
        self.close_usage();
        self.facts.typed.counts_inner = false;
        if let (Some(passes), Some(counts)) = (&mut self.facts.passes, self.facts.typed.inner.take()) {
            passes.end(&counts);
        }
    }
}
