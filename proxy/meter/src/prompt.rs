//! The prompt of an exchange, and the disjoint types of its tokens.

use scan::{Count, Counts};

use crate::tokens::TokenType;

/// Trusted counts of the prompt. All but `Input` are parts of it; cached audio is part of `InputCached` and of
/// `InputAudio`, and so are images. `InputCacheWrite` has the tokens of every lifetime.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prompt(pub(crate) Counts);

impl Prompt {
    /// Returns the prompt in `counts`, if they have its length.
    pub(crate) fn of(counts: &Counts) -> Option<Self> {
        counts.get(Count::Input)?;
        let parts =
            counts.or_zero(Count::InputCachedAudio).saturating_add(counts.or_zero(Count::InputCachedImage));
        let cached = counts.or_zero(Count::InputCached).max(parts);
        let written = counts.cache_writes();
        Some(Self(counts.with(Count::InputCached, cached).with(Count::InputCacheWrite, written)))
    }

    /// Returns a prompt of text with so many tokens, of which some are `cached`.
    pub(crate) fn text(input: u64, cached: u64) -> Self {
        Self(Counts::of([(Count::Input, input), (Count::InputCached, cached)]))
    }

    /// Returns one of its counts.
    pub(crate) fn count(&self, count: Count) -> u64 {
        self.0.or_zero(count)
    }

    /// Returns all its tokens.
    pub(crate) fn input(&self) -> u64 {
        self.count(Count::Input)
    }

    /// Returns the disjoint types of its tokens.
    pub(crate) fn by_type(&self) -> [u64; TokenType::ALL.len()] {
        let mut by_type = [0; TokenType::ALL.len()];
        let written = self.count(Count::InputCacheWrite);
        let written_1h = self.count(Count::InputCacheWrite1h).min(written);
        let (audio, image) = (self.count(Count::InputCachedAudio), self.count(Count::InputCachedImage));
        // Part of the audio, images and videos may have come from the cache. If the server does not report which, the
        // earlier types here are taken in full.
        let parts = [
            (TokenType::InputCachedAudio, audio),
            (TokenType::InputCachedImage, image),
            (
                TokenType::InputCached,
                self.count(Count::InputCached).saturating_sub(audio).saturating_sub(image),
            ),
            // The more expensive lifetime first: if the counts exceed the prompt, it is taken in full.
            (TokenType::InputCacheWrite1h, written_1h),
            (TokenType::InputCacheWrite, written - written_1h),
            (TokenType::InputAudio, self.count(Count::InputAudio).saturating_sub(audio)),
            (TokenType::InputImage, self.count(Count::InputImage).saturating_sub(image)),
            (TokenType::InputVideo, self.count(Count::InputVideo)),
        ];
        by_type[TokenType::Input as usize] = split(self.input(), parts, &mut by_type);
        by_type
    }

    /// Returns the cached tokens that exceed the prompt: SGLang's prefill and decode servers count the
    /// prefix twice. At most the prompt is counted as cached.
    pub(crate) fn cached_excess(&self) -> u64 {
        self.count(Count::InputCached).saturating_sub(self.input())
    }
}

/// Gives each part its count, up to `total`, and returns the rest.
pub(crate) fn split<const N: usize>(
    total: u64,
    parts: [(TokenType, u64); N],
    by_type: &mut [u64; TokenType::ALL.len()],
) -> u64 {
    let mut rest = total;
    for (kind, claimed) in parts {
        by_type[kind as usize] = claimed.min(rest);
        rest -= by_type[kind as usize];
    }
    rest
}
