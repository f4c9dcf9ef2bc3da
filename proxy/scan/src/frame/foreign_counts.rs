//! The members of other dialects in the frames of a body.

use crate::counts::{Count, Counts};
use crate::dialect::Dialect;
use crate::field::Field;
use crate::frame::usage::{self, CACHE_WRITE_5M, Extra, FOREIGN_INPUT, count, quoted_count};
use crate::json::Value;

/// The rank of the tokens of tool results, which Gemini's prompt excludes.
pub(crate) const TOOL_PROMPT: u8 = 8;

/// The rank of the tokens of thoughts, which Gemini's candidates exclude.
pub(crate) const THOUGHTS: u8 = 9;

/// The members of other dialects than the body's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Foreign {
    /// The last value of each count, and the numbers that are a count only together with others.
    counts: Counts,
    extra: Extra,
    /// The dialect of the first mark in the current frame.
    pub(crate) mark: Option<Dialect>,
    /// The current frame has a count.
    pub(crate) is_counted: bool,
}

impl Foreign {
    /// Returns true if the current frame has such a member.
    pub(crate) fn is_present(&self) -> bool {
        self.mark.is_some() || self.is_counted
    }

    /// Returns true if there is a prompt beside which the cached tokens were added.
    pub(crate) fn excludes_cache(&self) -> bool {
        self.extra.ranks[usize::from(FOREIGN_INPUT)].is_some()
    }

    /// Reads the value of a count.
    pub(crate) fn take(&mut self, field: Field, value: Value<'_>) {
        let number = match value {
            Value::Number(number) => count(number),
            Value::Null => return,
            value => quoted_count(value),
        };
        self.is_counted = true;
        match (number, field) {
            (None, _) => self.counts.rejected += 1,
            (Some(number), Field::Count(count)) => usage::take(&mut self.counts, count, number),
            (_, Field::Extra(rank)) => self.extra.ranks[usize::from(rank)] = number,
            _ => {}
        }
    }

    /// The counts of the body so far, with `own` members of its dialect.
    pub(crate) fn counts(&self, own: &Counts) -> Counts {
        let mut counts = usage::merged(own, &self.counts);
        let part = |rank: u8| self.extra.ranks[usize::from(rank)];
        let both = usage::add_five_minutes(&mut counts, part(CACHE_WRITE_5M));
        let mut extra = self.extra;
        extra.ranks[2] = extra.ranks[2].or(both);
        extra.ranks[0] = extra.ranks[0].or(own.get(Count::Total));
        counts = usage::of_any(counts, &extra);
        counts.add(Count::Input, part(TOOL_PROMPT));
        counts.add(Count::Output, part(THOUGHTS));
        let reasoning = counts.get(Count::OutputReasoning).or(part(THOUGHTS));
        counts.with(Count::OutputReasoning, reasoning).with(Count::InputBeside, own.get(Count::InputBeside))
    }
}
