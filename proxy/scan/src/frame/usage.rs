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

/// A part of a count that has counts of its own (a modality, or the lifetime of what was written to a cache), or a count in
/// a list of named numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Audio,
    Image,
    Video,
    OneHour,
    Prompt,
    Answer,
    Total,
}

impl Part {
    /// Reads Gemini's word for a modality (in capitals in `generateContent`, in small letters in interactions), Bedrock's
    /// for a lifetime, or Meta's for a count.
    pub(crate) fn read(word: &[u8]) -> Option<Self> {
        match word {
            b"AUDIO" | b"audio" => Some(Self::Audio),
            b"IMAGE" | b"image" => Some(Self::Image),
            b"VIDEO" | b"video" => Some(Self::Video),
            b"1h" => Some(Self::OneHour),
            b"num_prompt_tokens" | b"prompt_tokens" | b"input_tokens" => Some(Self::Prompt),
            b"num_completion_tokens" | b"completion_tokens" | b"output_tokens" => Some(Self::Answer),
            b"num_total_tokens" | b"total_tokens" => Some(Self::Total),
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
            (Field::Metric, Self::Prompt) => Some(Count::Input),
            (Field::Metric, Self::Answer) => Some(Count::Output),
            (Field::Metric, Self::Total) => Some(Count::Total),
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

/// Sets a missing total of the tokens written to a cache: the sum of both lifetimes, if one is of `five_minutes`. Returns
/// that sum.
pub(crate) fn add_five_minutes(counts: &mut Counts, five_minutes: Option<u64>) -> Option<u64> {
    let both = five_minutes.map(|tokens| tokens + counts.or_zero(Count::InputCacheWrite1h));
    counts.set(Count::InputCacheWrite, counts.get(Count::InputCacheWrite).or(both));
    both
}

/// Adds the tool results and the thoughts, which Gemini's prompt and candidates exclude, unless the total says that some
/// server includes them.
pub(crate) fn with_thoughts(mut counts: Counts, extra: &Extra) -> Counts {
    let parts = [extra.ranks[0], counts.get(Count::OutputReasoning)];
    let wholes = [Count::Input, Count::Output];
    let named: u64 = wholes.map(|whole| counts.or_zero(whole)).into_iter().sum();
    let rest = counts.get(Count::Total).and_then(|total| total.checked_sub(named));
    let [tools, thoughts] = parts.map(Option::unwrap_or_default);
    // Tokens beside the prompt and beside the answer, the likeliest first.
    let rows = [[tools, thoughts], [0, thoughts], [tools, 0], [0, 0]];
    let is_sum = |[prompt, answer]: &[u64; 2]| {
        let fits = |whole, part, beside| beside == part || part <= counts.or_zero(whole);
        rest == Some(prompt + answer)
            && fits(Count::Input, tools, *prompt)
            && fits(Count::Output, thoughts, *answer)
    };
    let beside = rows.into_iter().find(is_sum).unwrap_or(rows[0]);
    for ((whole, part), beside) in wholes.into_iter().zip(parts).zip(beside) {
        counts.add(whole, part.map(|_| beside));
    }
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

/// The rank of [`Count::InputBeside`].
pub(crate) const BESIDE_PROMPT: u8 = 10;

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
    let own = |count, other| above_zero(counts.get(count), other).or(other);
    let (input, output) = (own(Count::Input, input), own(Count::Output, output));
    counts.with(Count::Input, input).with(Count::Output, output)
}

/// The number of one name, unless it is a zero beside a number of another name, which counts.
fn above_zero(number: Option<u64>, other: Option<u64>) -> Option<u64> {
    number.filter(|tokens| *tokens > 0 || other.is_none())
}

/// Counts by any server's names. A total alone is all prompt, as in embeddings. Anthropic's cached tokens are added to
/// its `input_tokens`; a server that adds them to OpenAI's `prompt_tokens` has counted them there.
pub(crate) fn of_any(mut counts: Counts, extra: &Extra) -> Counts {
    let [total, read, written, excluding, ..] = extra.ranks;
    let hour = counts.get(Count::InputCacheWrite1h);
    let excluded = [read, written.or(hour)].into_iter().flatten().fold(0, u64::saturating_add);
    settle_used(&mut counts);
    let named = above_zero(counts.get(Count::Input), excluding);
    let input = match (named, excluding, counts.get(Count::Output)) {
        (None, None, None) => total.or(extra.addends),
        (None, Some(input), _) => Some(input.saturating_add(excluded)),
        (input, ..) => input,
    };
    let counts = counts.with(Count::Input, input).with(Count::Total, total);
    let cached = counts.get(Count::InputCached).max(read);
    let own = counts.get(Count::InputCacheWrite);
    let written = above_zero(written, own).or(own).or(hour);
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
pub(crate) fn settled(dialect: Dialect, has_stopped: bool, counts: Counts, extra: &Extra) -> Counts {
    match dialect {
        Dialect::OllamaChat | Dialect::OllamaGenerate if has_stopped => with_zero(counts),
        Dialect::BedrockConverse => {
            with_cache(counts).with(Count::InputBeside, extra.ranks[usize::from(BESIDE_PROMPT)])
        }
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
