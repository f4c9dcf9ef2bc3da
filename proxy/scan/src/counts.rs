//! Token counts as a server reports them: a table with one number for each [`Count`].

use std::fmt;
use std::ops::Range;

crate::listed_enum! {
    /// A number of tokens in a server's usage. The parts of the prompt are part of `Input`, those of the answer are part
    /// of `Output`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Count {
        /// Prompt tokens, cached ones included.
        Input,
        /// Prompt tokens served from a cache.
        InputCached,
        /// Prompt tokens written to a cache, for any lifetime.
        InputCacheWrite,
        /// The part of them that was written for one hour.
        InputCacheWrite1h,
        /// Prompt tokens of audio; cached ones may be among them.
        InputAudio,
        /// Prompt tokens of images; cached ones may be among them.
        InputImage,
        /// Prompt tokens of videos; cached ones may be among them.
        InputVideo,
        /// Prompt tokens of audio served from a cache, part of `InputCached` and of `InputAudio`.
        InputCachedAudio,
        /// Prompt tokens of images served from a cache, part of `InputCached` and of `InputImage`.
        InputCachedImage,
        /// Generated tokens, hidden ones included.
        Output,
        /// Generated tokens spent on reasoning.
        OutputReasoning,
        /// Generated audio tokens.
        OutputAudio,
        /// Generated image tokens.
        OutputImage,
        /// Generated video tokens.
        OutputVideo,
        /// Tokens of the prompt and the answer together, as the server states them: no part, and not computed here.
        Total,
        /// Prompt tokens that the model read, where `Input` has another number, which is on the vendor's invoice.
        InputUsed,
        /// Tokens that the model generated, where `Output` has another number, which is on the vendor's invoice.
        OutputUsed,
        /// Tokens that may stand beside the prompt: results of tools that the server ran, its own checks of the prompt, and
        /// numbers of tokens that are not read. `Total` says whether they do.
        InputBeside,
    }
}

/// The side of an exchange that a [`Count`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The prompt and its parts.
    Prompt,
    /// The answer and its parts.
    Answer,
    /// Neither: a number beside those of the prompt and the answer.
    Beside,
}

impl Count {
    /// The side that it describes.
    pub const fn side(self) -> Side {
        match self {
            Self::Input | Self::InputCached | Self::InputCacheWrite | Self::InputCacheWrite1h => Side::Prompt,
            Self::InputAudio | Self::InputImage | Self::InputVideo => Side::Prompt,
            Self::InputCachedAudio | Self::InputCachedImage => Side::Prompt,
            Self::Output | Self::OutputReasoning => Side::Answer,
            Self::OutputAudio | Self::OutputImage | Self::OutputVideo => Side::Answer,
            Self::Total | Self::InputUsed | Self::OutputUsed | Self::InputBeside => Side::Beside,
        }
    }

    /// The counts of one side.
    pub fn of(side: Side) -> impl Iterator<Item = Self> {
        Self::ALL[side.places()].iter().copied()
    }
}

impl Side {
    /// The places of its counts in [`Count::ALL`].
    const fn places(self) -> Range<usize> {
        let (answer, beside) = (Count::Output as usize, Count::Total as usize);
        match self {
            Self::Prompt => 0..answer,
            Self::Answer => answer..beside,
            Self::Beside => beside..Count::ALL.len(),
        }
    }

    /// The bits of its counts in [`Counts::present`].
    const fn bits(self) -> u32 {
        let Range { start, end } = self.places();
        (1 << end) - (1 << start)
    }
}

// The counts of a side are adjacent.
const _: () = {
    let mut at = 0;
    while at < Count::ALL.len() {
        let Range { start, end } = Count::ALL[at].side().places();
        assert!(start <= at && at < end);
        at += 1;
    }
};

/// The counts of one usage. One that is absent is not zero.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The numbers in the order of [`Count::ALL`]: zero where the count is absent, so that equal counts have equal bytes.
    numbers: [u64; Count::ALL.len()],
    /// One bit for each count that is present.
    present: u32,
    /// Numbers that cannot be a count (negative, fractional, beyond 2^53) and were rejected.
    pub rejected: u32,
}

impl Counts {
    /// Returns these counts: a number of each, or `None`.
    pub fn of<const N: usize>(counts: [(Count, impl Into<Option<u64>>); N]) -> Self {
        counts.into_iter().fold(Self::default(), |all, (count, tokens)| all.with(count, tokens))
    }

    /// Returns the counts with another number, or with none.
    pub fn with(mut self, count: Count, tokens: impl Into<Option<u64>>) -> Self {
        self.set(count, tokens);
        self
    }

    /// Returns the counts beside `rejected` numbers.
    pub fn with_rejected(self, rejected: u32) -> Self {
        Self { rejected, ..self }
    }

    /// Sets or removes a number.
    #[inline]
    pub fn set(&mut self, count: Count, tokens: impl Into<Option<u64>>) {
        let (tokens, bit) = (tokens.into(), 1 << count as u32);
        self.numbers[count as usize] = tokens.unwrap_or(0);
        self.present = if tokens.is_some() { self.present | bit } else { self.present & !bit };
    }

    /// Adds tokens to a number, if there are some; an absent one becomes theirs.
    #[inline]
    pub fn add(&mut self, count: Count, tokens: impl Into<Option<u64>>) {
        if let Some(tokens) = tokens.into() {
            self.set(count, self.or_zero(count).saturating_add(tokens));
        }
    }

    /// Returns a number, if it is present.
    #[inline]
    pub fn get(&self, count: Count) -> Option<u64> {
        (self.present & 1 << count as u32 != 0).then_some(self.numbers[count as usize])
    }

    /// Returns a number, or zero if it is absent.
    #[inline]
    pub fn or_zero(&self, count: Count) -> u64 {
        self.numbers[count as usize]
    }

    /// Returns true if there is no number, not even a rejected one, except for [`Count::InputBeside`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.present & !(1 << Count::InputBeside as u32) == 0 && self.rejected == 0
    }

    /// Returns true if some counts are present and all of them are zero.
    pub fn are_zeros(&self) -> bool {
        self.present != 0 && self.rejected == 0 && self.numbers.iter().all(|tokens| *tokens == 0)
    }

    /// Replaces the numbers of one side by those of other counts.
    #[inline]
    pub fn copy(&mut self, side: Side, from: &Self) {
        self.numbers[side.places()].copy_from_slice(&from.numbers[side.places()]);
        self.present = self.present & !side.bits() | from.present & side.bits();
    }

    /// Replaces each number of one side by what `join` makes of it and of that of other counts, where an absent one is
    /// zero.
    #[inline]
    pub fn join(&mut self, side: Side, other: &Self, join: impl Fn(u64, u64) -> u64) {
        let others = &other.numbers[side.places()];
        for (tokens, other) in self.numbers[side.places()].iter_mut().zip(others) {
            *tokens = join(*tokens, *other);
        }
        self.present |= side.bits();
    }

    /// Returns the prompt tokens written to a cache, for any lifetime: the total, or without it those of one hour.
    pub fn cache_writes(&self) -> u64 {
        self.get(Count::InputCacheWrite).unwrap_or(self.or_zero(Count::InputCacheWrite1h))
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = Count::ALL.into_iter().filter_map(|count| Some((count, self.get(count)?)));
        f.debug_map().entries(present).entry(&"rejected", &self.rejected).finish()
    }
}
