//! Token counts out of a frame: which number goes where, and which together make one.

use crate::event::Counts;
use crate::field::Field;

/// Numbers that are a count only together with others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) ranks: [Option<u64>; Self::RANKS],
    /// The sum of [`Field::Addend`].
    pub(crate) addends: Option<u64>,
    /// The part of the prompt at hand was heard; how long it was has rank 1.
    pub(crate) heard: bool,
}

impl Extra {
    const RANKS: usize = 5;

    /// A part of the prompt begins.
    pub(crate) fn begin_modality(&mut self) {
        self.ranks[1] = None;
        self.heard = false;
    }

    /// The first that was said.
    pub(crate) fn first(&self) -> Option<u64> {
        self.ranks.iter().copied().flatten().next()
    }
}

/// The object of llama.cpp's timings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timings {
    pub(crate) seen: bool,
    pub(crate) prompt: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) predicted: Option<u64>,
}

impl Timings {
    /// The counts in it, where there is no usage object.
    pub(crate) fn counts(&self) -> Option<Counts> {
        let output = self.predicted?;
        let input = self.prompt.map(|n| n + self.cached.unwrap_or(0));
        Some(Counts { input, input_cached: self.cached, output: Some(output), ..Counts::default() })
    }
}

/// The counts, if any number was said.
pub(crate) fn said(counts: Counts) -> Option<Counts> {
    (counts != Counts::default()).then_some(counts)
}

/// Where a field's number goes.
pub(crate) fn slot(field: Field) -> Option<fn(&mut Counts) -> &mut Option<u64>> {
    Some(match field {
        Field::InputTokens => |c| &mut c.input,
        Field::CachedTokens => |c| &mut c.input_cached,
        Field::CacheWriteTokens => |c| &mut c.input_cache_write,
        Field::InputAudioTokens => |c| &mut c.input_audio,
        Field::OutputTokens => |c| &mut c.output,
        Field::ReasoningTokens => |c| &mut c.output_reasoning,
        Field::AudioTokens => |c| &mut c.output_audio,
        _ => return None,
    })
}

/// `earlier`, each number overwritten where `later` says one.
pub(crate) fn merged(earlier: &Counts, later: &Counts) -> Counts {
    Counts {
        input: later.input.or(earlier.input),
        input_cached: later.input_cached.or(earlier.input_cached),
        input_cache_write: later.input_cache_write.or(earlier.input_cache_write),
        input_audio: later.input_audio.or(earlier.input_audio),
        output: later.output.or(earlier.output),
        output_reasoning: later.output_reasoning.or(earlier.output_reasoning),
        ..*later
    }
}

/// Anthropic's input excludes what a cache had or took.
pub(crate) fn with_cache(counts: Counts) -> Counts {
    let cache = counts.input_cached.unwrap_or(0) + counts.input_cache_write.unwrap_or(0);
    Counts { input: counts.input.map(|n| n + cache), ..counts }
}

/// Gemini's prompt excludes what its tools said, and its candidates exclude its thoughts.
pub(crate) fn with_thoughts(counts: Counts, extra: &Extra) -> Counts {
    let [tools, ..] = extra.ranks;
    Counts { input: sum(counts.input, tools), output: sum(counts.output, counts.output_reasoning), ..counts }
}

/// TGI's ordinal of the token, unless the details say how many there are, in all sequences.
pub(crate) fn with_ordinal(counts: Counts, extra: &Extra) -> Counts {
    let [ordinal, ..] = extra.ranks;
    Counts { output: sum(counts.output, extra.addends).or(ordinal), ..counts }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// A number as a count: a whole number from 0 to 2^53, however it is written (`12`, `12.0`).
pub(crate) fn count(number: &[u8]) -> Option<u64> {
    const MOST: u64 = 1 << 53;
    if number.len() <= 16 && number.iter().all(u8::is_ascii_digit) {
        let n = number.iter().fold(0_u64, |n, &digit| n * 10 + u64::from(digit - b'0'));
        return (n <= MOST).then_some(n);
    }
    let n: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    (n >= 0.0 && n <= MOST as f64 && n.fract() == 0.0).then_some(n as u64)
}
