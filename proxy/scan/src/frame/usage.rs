//! Token counts of a frame: the target of each number, and the numbers that form one count together.

use crate::counts::{Count, Counts, Side};
use crate::dialect::Dialect;
use crate::field::Field;
use crate::json::Value;

/// Numbers that are a count only together with others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) ranks: [Option<u64>; Self::RANKS],
    /// The sum of [`Field::Addend`].
    pub(crate) addends: Option<u64>,
    /// The kind of the current part; rank 1 has its length.
    pub(crate) part: Option<Part>,
}

impl Extra {
    const RANKS: usize = 11;

    /// Starts a part of a count.
    pub(crate) fn begin_part(&mut self) {
        self.ranks[1] = None;
        self.part = None;
    }

    /// The prompt without an answer: the first of ranks 0 to 4 that is present. Beside ranks 3 and 4 images are counted.
    pub(crate) fn prompt(&self, image: Option<u64>) -> Option<u64> {
        let (one, billed) = (&self.ranks[..3], &self.ranks[3..5]);
        let first = |ranks: &[Option<u64>]| ranks.iter().copied().flatten().next();
        first(one).or_else(|| sum(first(billed), image))
    }
}

/// A part of a count that has counts of its own: a modality, or the lifetime of what was written to a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Audio,
    Image,
    Video,
    OneHour,
}

impl Part {
    /// Reads Gemini's word for a modality (in capitals in `generateContent`, in small letters in interactions), or
    /// Bedrock's for a lifetime.
    pub(crate) fn read(word: &[u8]) -> Option<Self> {
        match word {
            b"AUDIO" | b"audio" => Some(Self::Audio),
            b"IMAGE" | b"image" => Some(Self::Image),
            b"VIDEO" | b"video" => Some(Self::Video),
            b"1h" => Some(Self::OneHour),
            _ => None,
        }
    }

    /// The count of this part in `whole`. Cached tokens of videos count as of no modality: no vendor has a price for them.
    pub(crate) fn count(self, whole: Field) -> Option<Count> {
        match (whole, self) {
            (Field::Modality | Field::ToolModality, Self::Audio) => Some(Count::InputAudio),
            (Field::Modality | Field::ToolModality, Self::Image) => Some(Count::InputImage),
            (Field::Modality | Field::ToolModality, Self::Video) => Some(Count::InputVideo),
            (Field::CachedModality, Self::Audio) => Some(Count::InputCachedAudio),
            (Field::CachedModality, Self::Image) => Some(Count::InputCachedImage),
            (Field::OutputModality, Self::Audio) => Some(Count::OutputAudio),
            (Field::OutputModality, Self::Image) => Some(Count::OutputImage),
            (Field::OutputModality, Self::Video) => Some(Count::OutputVideo),
            (Field::CacheLifetime, Self::OneHour) => Some(Count::InputCacheWrite1h),
            _ => None,
        }
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
    /// Its counts, used if there is no usage object.
    pub(crate) fn counts(&self) -> Option<Counts> {
        let output = self.predicted?;
        let input = self.prompt.map(|n| n + self.cached.unwrap_or(0));
        let counts =
            [(Count::Input, input), (Count::InputCached, self.cached), (Count::Output, Some(output))];
        Some(Counts::of(counts))
    }
}

/// The counts, if any number is present.
pub(crate) fn non_empty(counts: Counts) -> Option<Counts> {
    (!counts.is_empty()).then_some(counts)
}

/// Reads a number. Of two names, one of which has no count, the other one counts.
pub(crate) fn take(counts: &mut Counts, count: Count, number: u64) {
    counts.set(count, if number == 0 { counts.or_zero(count) } else { number });
}

/// `earlier`, overwritten by each number of `later`. A zero of the prompt overwrites only if another number of the
/// prompt grew, as for a prompt that turns out to be cached: some servers repeat the names of the prompt with zeros. A
/// zero of the answer never does.
pub(crate) fn merged(earlier: &Counts, later: &Counts) -> Counts {
    let mut counts = *later;
    let has_grown = Count::of(Side::Prompt).any(|count| later.or_zero(count) > earlier.or_zero(count));
    for (side, has_grown) in [(Side::Prompt, has_grown), (Side::Answer, false)] {
        for count in Count::of(side) {
            let (before, now) = (earlier.get(count), later.get(count));
            if now.is_none() || now == Some(0) && !has_grown && before.is_some() {
                counts.set(count, before);
            }
        }
    }
    counts
}

/// Counts what was used where the invoice has nothing, and keeps it beside another number on the invoice.
pub(crate) fn settle_used(counts: &mut Counts) {
    let billed = counts.or_zero(Count::Input);
    if billed > 0 && counts.get(Count::InputUsed).is_some() {
        // The cached tokens are among those used.
        counts.set(Count::InputCached, counts.get(Count::InputCached).map(|cached| cached.min(billed)));
    }
    for (billed, used) in [(Count::Input, Count::InputUsed), (Count::Output, Count::OutputUsed)] {
        if counts.or_zero(billed) == 0 && counts.get(used).is_some() {
            counts.set(billed, counts.get(used));
        }
        if counts.get(billed) == counts.get(used) {
            counts.set(used, None);
        }
    }
}

/// Adds the cached tokens, which the input of Anthropic and of Bedrock's Converse excludes.
pub(crate) fn with_cache(counts: Counts) -> Counts {
    let cache = counts.or_zero(Count::InputCached) + counts.cache_writes();
    counts.with(Count::Input, counts.get(Count::Input).map(|n| n + cache))
}

/// Sets a missing total of the tokens written to a cache: the sum of both lifetimes, if one is of `five_minutes`.
pub(crate) fn add_five_minutes(counts: &mut Counts, five_minutes: Option<u64>) {
    let both = five_minutes.map(|tokens| tokens + counts.or_zero(Count::InputCacheWrite1h));
    counts.set(Count::InputCacheWrite, counts.get(Count::InputCacheWrite).or(both));
}

/// Adds the tool results and the thoughts, which Gemini's prompt and candidates exclude.
pub(crate) fn with_thoughts(mut counts: Counts, extra: &Extra) -> Counts {
    let [tools, ..] = extra.ranks;
    counts.add(Count::Input, tools);
    counts.add(Count::Output, counts.get(Count::OutputReasoning));
    counts
}

/// The ranks of the counts in an answer in the shape of another path, by the names of a chat and of a
/// response.
pub(crate) const FOREIGN_INPUT: u8 = 3;
pub(crate) const FOREIGN_OUTPUT: u8 = 4;

/// The rank of the tokens written to a cache for five minutes, in the dialects with Anthropic's names.
pub(crate) const CACHE_WRITE_5M: u8 = 5;

/// The ranks of cached tokens, and of those written to a cache, beside the details of a prompt that may have them, too.
/// A server with both places may leave a zero in either: the larger number counts.
pub(crate) const OTHER_CACHED: u8 = 6;
pub(crate) const OTHER_CACHE_WRITE: u8 = 7;

/// The rank of tokens that a server may count beside the prompt: results of tools that it ran itself, its own checks of the
/// prompt, and numbers of tokens that are not read.
pub(crate) const BESIDE_PROMPT: u8 = 10;

/// Adds tokens beside the prompt to it, if the `total` says that they are not a part of it.
pub(crate) fn add_beside(counts: &mut Counts, beside: u64, total: Option<u64>) {
    let (Some(input), 0) = (counts.get(Count::Input), counts.rejected) else { return };
    let sum = input.saturating_add(counts.or_zero(Count::Output)).saturating_add(beside);
    let reasoning = counts.or_zero(Count::OutputReasoning);
    if total == Some(sum) || total == Some(sum.saturating_add(reasoning)) {
        counts.add(Count::Input, beside);
    }
}

/// Adds the speaker's words to the prompt of a transcription, if the total alone has them.
#[cold]
pub(crate) fn add_speech(counts: &mut Counts) {
    let known = [Count::Input, Count::Output, Count::Total].map(|count| counts.get(count));
    let ([Some(input), Some(output), Some(total)], 0) = (known, counts.rejected) else { return };
    let words = total.saturating_sub(input.saturating_add(output));
    if words > 0 && counts.get(Count::InputAudio).is_none_or(|audio| audio == words) {
        counts.set(Count::InputAudio, words);
        counts.add(Count::Input, words);
    }
}

/// The counts of a prompt without an answer.
pub(crate) fn of_prompt(counts: Counts, extra: &Extra) -> Counts {
    counts.with(Count::Input, extra.prompt(counts.get(Count::InputImage)))
}

/// The counts, or those by another dialect's names where the dialect's own are absent.
pub(crate) fn or_foreign(counts: Counts, extra: &Extra) -> Counts {
    let [_, _, _, input, output, ..] = extra.ranks;
    let (input, output) = (counts.get(Count::Input).or(input), counts.get(Count::Output).or(output));
    counts.with(Count::Input, input).with(Count::Output, output)
}

/// Counts by any server's names. A total alone is all prompt, as in embeddings. Anthropic's cached tokens are added to
/// its `input_tokens`; a server that adds them to OpenAI's `prompt_tokens` has counted them there.
pub(crate) fn of_any(mut counts: Counts, extra: &Extra) -> Counts {
    let [total, read, written, excluding, ..] = extra.ranks;
    let own = counts.get(Count::InputCacheWrite).or(counts.get(Count::InputCacheWrite1h));
    let written = written.or(own);
    settle_used(&mut counts);
    let input = match (counts.get(Count::Input), excluding, counts.get(Count::Output)) {
        (None, None, None) => total.or(extra.addends),
        (None, Some(input), _) => {
            Some(input.saturating_add(read.unwrap_or(0)).saturating_add(written.unwrap_or(0)))
        }
        (input, ..) => input,
    };
    let counts = counts.with(Count::Input, input).with(Count::Total, total);
    let cached = counts.get(Count::InputCached).max(read);
    counts.with(Count::InputCached, cached).with(Count::InputCacheWrite, written)
}

/// The dialect of an answer with these counts that names itself `named`: without an output it is a ranking,
/// and with an output it is not a list of embeddings.
pub(crate) fn dialect(named: Option<Dialect>, counts: &Counts) -> Option<Dialect> {
    match (named, counts.get(Count::Output)) {
        (Some(Dialect::Embeddings), Some(1..)) => None,
        (None, None) if counts.get(Count::Input).is_some() => Some(Dialect::Rerank),
        (named, _) => named,
    }
}

/// Completes the counts of a frame that is its own choice.
pub(crate) fn settled(dialect: Dialect, has_stopped: bool, counts: Counts) -> Counts {
    match dialect {
        Dialect::OllamaChat | Dialect::OllamaGenerate if has_stopped => with_zero(counts),
        Dialect::BedrockConverse => with_cache(counts),
        _ => counts,
    }
}

/// Adds the zero output that Ollama leaves out beside a prompt count.
fn with_zero(counts: Counts) -> Counts {
    counts.with(Count::Output, counts.get(Count::Output).or((counts.rejected == 0).then_some(0)))
}

/// TGI's ordinal of the token, unless the details have the count of all sequences.
pub(crate) fn with_ordinal(counts: Counts, extra: &Extra) -> Counts {
    let [ordinal, ..] = extra.ranks;
    counts.with(Count::Output, sum(counts.get(Count::Output), extra.addends).or(ordinal))
}

pub(crate) fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

/// A number as a count: a whole number from 0 to 2^53, in any notation (`12`, `12.0`).
pub(crate) fn count(number: &[u8]) -> Option<u64> {
    const MAX: u64 = 1 << 53;
    let add = |n: u64, digit: &u8| digit.is_ascii_digit().then(|| n * 10 + u64::from(digit - b'0'));
    // So many digits cannot overflow.
    if number.len() <= 16
        && let Some(n) = number.iter().try_fold(0, add)
    {
        return (n <= MAX).then_some(n);
    }
    let n: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    (n >= 0.0 && n <= MAX as f64 && n.fract() == 0.0).then_some(n as u64)
}

/// A number in a string as a count: JSON of Protocol Buffers has numbers of 64 bits as strings.
#[cold]
pub(crate) fn quoted_count(value: Value<'_>) -> Option<u64> {
    const LONGEST: usize = 20;
    match value {
        Value::Word(word) if (1..=LONGEST).contains(&word.len()) => count(word),
        _ => None,
    }
}
