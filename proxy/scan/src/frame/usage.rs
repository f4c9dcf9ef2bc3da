//! Token counts of a frame: the target of each number, and the numbers that form one count together.

use crate::dialect::Dialect;
use crate::event::Counts;
use crate::field::Field;

/// Numbers that are a count only together with others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) ranks: [Option<u64>; Self::RANKS],
    /// The sum of [`Field::Addend`].
    pub(crate) addends: Option<u64>,
    /// The modality of the current part; rank 1 has its length.
    pub(crate) modality: Option<Modality>,
}

impl Extra {
    const RANKS: usize = 6;

    /// Starts the part of one modality.
    pub(crate) fn begin_modality(&mut self) {
        self.ranks[1] = None;
        self.modality = None;
    }

    /// The first rank that is present.
    pub(crate) fn first(&self) -> Option<u64> {
        self.ranks.iter().copied().flatten().next()
    }
}

/// A modality with its own counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modality {
    Audio,
    Image,
    Video,
}

impl Modality {
    /// Reads Gemini's word: in capitals in `generateContent`, in small letters in interactions.
    pub(crate) fn read(word: &[u8]) -> Option<Self> {
        match word {
            b"AUDIO" | b"audio" => Some(Self::Audio),
            b"IMAGE" | b"image" => Some(Self::Image),
            b"VIDEO" | b"video" => Some(Self::Video),
            _ => None,
        }
    }

    /// The field of its prompt tokens.
    pub(crate) fn input(self) -> Field {
        match self {
            Self::Audio => Field::InputAudioTokens,
            Self::Image => Field::InputImageTokens,
            Self::Video => Field::InputVideoTokens,
        }
    }

    /// The field of its generated tokens.
    pub(crate) fn output(self) -> Field {
        match self {
            Self::Audio => Field::AudioTokens,
            Self::Image => Field::OutputImageTokens,
            Self::Video => Field::OutputVideoTokens,
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
        Some(Counts { input, input_cached: self.cached, output: Some(output), ..Counts::default() })
    }
}

/// The counts, if any number is present.
pub(crate) fn non_empty(counts: Counts) -> Option<Counts> {
    (counts != Counts::default()).then_some(counts)
}

/// The target of a field's number.
pub(crate) fn slot(field: Field) -> Option<fn(&mut Counts) -> &mut Option<u64>> {
    Some(match field {
        Field::InputTokens => |c| &mut c.input,
        Field::CachedTokens => |c| &mut c.input_cached,
        Field::CacheWriteTokens => |c| &mut c.input_cache_write,
        Field::CacheWrite1hTokens => |c| &mut c.input_cache_write_1h,
        Field::InputAudioTokens => |c| &mut c.input_audio,
        Field::OutputTokens => |c| &mut c.output,
        Field::ReasoningTokens => |c| &mut c.output_reasoning,
        Field::AudioTokens => |c| &mut c.output_audio,
        Field::InputImageTokens => |c| &mut c.input_image,
        Field::InputVideoTokens => |c| &mut c.input_video,
        Field::OutputImageTokens => |c| &mut c.output_image,
        Field::OutputVideoTokens => |c| &mut c.output_video,
        _ => return None,
    })
}

/// `earlier`, overwritten by each number of `later`.
pub(crate) fn merged(earlier: &Counts, later: &Counts) -> Counts {
    Counts {
        input: later.input.or(earlier.input),
        input_cached: later.input_cached.or(earlier.input_cached),
        input_cache_write: later.input_cache_write.or(earlier.input_cache_write),
        input_cache_write_1h: later.input_cache_write_1h.or(earlier.input_cache_write_1h),
        input_audio: later.input_audio.or(earlier.input_audio),
        input_image: later.input_image.or(earlier.input_image),
        input_video: later.input_video.or(earlier.input_video),
        output: later.output.or(earlier.output),
        output_reasoning: later.output_reasoning.or(earlier.output_reasoning),
        ..*later
    }
}

/// Adds the cached tokens, which Anthropic's input excludes.
pub(crate) fn with_cache(counts: Counts) -> Counts {
    let cache = counts.input_cached.unwrap_or(0) + counts.cache_writes();
    Counts { input: counts.input.map(|n| n + cache), ..counts }
}

/// Adds the tool results and the thoughts, which Gemini's prompt and candidates exclude.
pub(crate) fn with_thoughts(counts: Counts, extra: &Extra) -> Counts {
    let [tools, ..] = extra.ranks;
    Counts { input: sum(counts.input, tools), output: sum(counts.output, counts.output_reasoning), ..counts }
}

/// The ranks of the counts in an answer in the shape of another path, by the names of a chat and of a
/// response.
pub(crate) const FOREIGN_INPUT: u8 = 3;
pub(crate) const FOREIGN_OUTPUT: u8 = 4;

/// The rank of the tokens written to a cache for five minutes, in the dialects with Anthropic's names.
pub(crate) const CACHE_WRITE_5M: u8 = 5;

/// The counts, or those by another dialect's names where the dialect's own are absent.
pub(crate) fn or_foreign(counts: Counts, extra: &Extra) -> Counts {
    let [_, _, _, input, output, _] = extra.ranks;
    Counts { input: counts.input.or(input), output: counts.output.or(output), ..counts }
}

/// Counts by any server's names. A total alone is all prompt, as in embeddings. Anthropic's cached tokens
/// are added to the prompt.
pub(crate) fn of_any(counts: Counts, extra: &Extra) -> Counts {
    let [total, read, written, ..] = extra.ranks;
    let written = written.or(counts.input_cache_write).or(counts.input_cache_write_1h);
    let input = match (counts.input, counts.output) {
        (None, None) => total,
        (input, _) => input.map(|n| n.saturating_add(read.unwrap_or(0)).saturating_add(written.unwrap_or(0))),
    };
    Counts { input, input_cached: counts.input_cached.or(read), input_cache_write: written, ..counts }
}

/// The dialect of an answer with these counts that names itself `named`: without an output it is a ranking,
/// and with an output it is not a list of embeddings.
pub(crate) fn dialect(named: Option<Dialect>, counts: &Counts) -> Option<Dialect> {
    match (named, counts.output) {
        (Some(Dialect::Embeddings), Some(1..)) => None,
        (None, None) if counts.input.is_some() => Some(Dialect::Rerank),
        (named, _) => named,
    }
}

/// Adds the zero output that Ollama leaves out beside a prompt count.
pub(crate) fn with_zero(counts: Counts) -> Counts {
    Counts { output: counts.output.or((counts.rejected == 0).then_some(0)), ..counts }
}

/// TGI's ordinal of the token, unless the details have the count of all sequences.
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

/// A number as a count: a whole number from 0 to 2^53, in any notation (`12`, `12.0`).
pub(crate) fn count(number: &[u8]) -> Option<u64> {
    const MAX: u64 = 1 << 53;
    if number.len() <= 16 && number.iter().all(u8::is_ascii_digit) {
        let n = number.iter().fold(0_u64, |n, &digit| n * 10 + u64::from(digit - b'0'));
        return (n <= MAX).then_some(n);
    }
    let n: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    (n >= 0.0 && n <= MAX as f64 && n.fract() == 0.0).then_some(n as u64)
}
