//! The sampling parameters of a request and the requested form of its answer: numbers at full precision, and
//! words of closed lists. Other values count as absent, so no free text of a client is kept.

use crate::frame::count;
use crate::json::Value;
use crate::limits::CARRY_BYTES;

/// The sampling parameters of a request and the requested form of its answer, where present.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// The limit of tokens of one answer, by any of the dialects' names.
    pub max_tokens: Option<u64>,
    /// `temperature`.
    pub temperature: Option<f64>,
    /// `top_p`.
    pub top_p: Option<f64>,
    /// `top_k`.
    pub top_k: Option<f64>,
    /// `seed`.
    pub seed: Option<i64>,
    /// `frequency_penalty`.
    pub frequency_penalty: Option<f64>,
    /// `presence_penalty`.
    pub presence_penalty: Option<f64>,
    /// The reasoning level.
    pub reasoning_level: Option<ReasoningLevel>,
    /// The requested kind of content.
    pub output_type: Option<OutputType>,
    /// The number of dimensions of an embedding.
    pub dimensions: Option<u32>,
    /// The requested formats of an embedding's numbers, in the order of [`ENCODING_FORMATS`].
    pub encoding_formats: [bool; ENCODING_FORMATS.len()],
}

crate::listed_enum! {
    /// The reasoning levels of the servers, ascending.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReasoningLevel {
        /// Without reasoning.
        None = "none",
        /// Less than low.
        Minimal = "minimal",
        /// Low.
        Low = "low",
        /// Medium.
        Medium = "medium",
        /// High.
        High = "high",
        /// More than high.
        XHigh = "xhigh",
        /// The maximum of the server.
        Max = "max",
    }
    /// The word in a request.
    pub fn name(self);
}

crate::listed_enum! {
    /// The kinds of content that can be requested.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OutputType {
        /// Plain text.
        Text = "text",
        /// JSON, with a schema or without.
        Json = "json",
        /// Images.
        Image = "image",
        /// Spoken text.
        Speech = "speech",
    }
    /// The value of `gen_ai.output.type`.
    pub fn name(self);
}

/// The formats of an embedding's numbers.
pub const ENCODING_FORMATS: [&str; 6] = ["float", "base64", "int8", "uint8", "binary", "ubinary"];

/// A parameter, by its member in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SamplingParam {
    /// `max_completion_tokens`, which replaces OpenAI's older name.
    MaxCompletionTokens,
    MaxTokens,
    Temperature,
    TopP,
    TopK,
    Seed,
    FrequencyPenalty,
    PresencePenalty,
    ReasoningLevel,
    /// The type of the answer's format.
    OutputType,
    /// One of the kinds of content in a list.
    Modality,
    Dimensions,
    EncodingFormat,
    /// One of the formats in a list.
    EmbeddingType,
}

impl Sampling {
    /// Reads a value; the last of two counts, as in every parser.
    pub(crate) fn take(&mut self, param: SamplingParam, value: Value<'_>) {
        match param {
            SamplingParam::MaxCompletionTokens | SamplingParam::MaxTokens => {
                self.max_tokens = number(value).and_then(count)
            }
            SamplingParam::Temperature => self.temperature = float(value),
            SamplingParam::TopP => self.top_p = float(value),
            SamplingParam::TopK => self.top_k = float(value),
            SamplingParam::Seed => {
                self.seed = number(value).and_then(|text| str::from_utf8(text).ok()?.parse().ok())
            }
            SamplingParam::FrequencyPenalty => self.frequency_penalty = float(value),
            SamplingParam::PresencePenalty => self.presence_penalty = float(value),
            SamplingParam::ReasoningLevel => self.reasoning_level = reasoning_level(value),
            SamplingParam::OutputType => self.output_type = output_type(value),
            // Text is in every such list.
            SamplingParam::Modality => match value {
                Value::Word(b"audio") => self.output_type = Some(OutputType::Speech),
                Value::Word(b"image") => self.output_type = Some(OutputType::Image),
                _ => {}
            },
            SamplingParam::Dimensions => {
                self.dimensions = number(value).and_then(count).and_then(|n| n.try_into().ok())
            }
            SamplingParam::EncodingFormat => {
                self.encoding_formats = [false; ENCODING_FORMATS.len()];
                self.add_encoding_format(value);
            }
            SamplingParam::EmbeddingType => self.add_encoding_format(value),
        }
    }
}

impl Sampling {
    fn add_encoding_format(&mut self, value: Value<'_>) {
        let flags = self.encoding_formats.iter_mut().zip(ENCODING_FORMATS);
        flags.filter(|(_, format)| is_word(value, format)).for_each(|(flag, _)| *flag = true);
    }
}

fn is_word(value: Value<'_>, word: &str) -> bool {
    value == Value::Word(word.as_bytes())
}

fn reasoning_level(value: Value<'_>) -> Option<ReasoningLevel> {
    ReasoningLevel::ALL.into_iter().find(|level| is_word(value, level.name()))
}

fn output_type(value: Value<'_>) -> Option<OutputType> {
    match value {
        Value::Word(b"text" | b"text/plain") => Some(OutputType::Text),
        Value::Word(b"json" | b"json_object" | b"json_schema" | b"application/json") => {
            Some(OutputType::Json)
        }
        _ => None,
    }
}

/// The text of a number, unless it may have been cut at the carry buffer.
pub(crate) fn number(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Number(number) if number.len() < CARRY_BYTES => Some(number),
        _ => None,
    }
}

fn float(value: Value<'_>) -> Option<f64> {
    let number: f64 = str::from_utf8(number(value)?).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}
