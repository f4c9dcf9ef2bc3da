//! How a request asks for its answers to be drawn, and in which form. Numbers, each as exact as it was
//! written, and words of closed lists; what is neither, or no number that can be, was not said. So
//! nothing that a client writes freely is kept.

use crate::frame::count;
use crate::json::Value;
use crate::limits::CARRY_BYTES;

/// How a request asks for its answers to be drawn, and in which form, where it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// Most tokens of one answer, by whatever name the dialect has for it.
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
    /// How much to reason.
    pub reasoning_level: Option<ReasoningLevel>,
    /// The kind of content that is asked for.
    pub output_type: Option<OutputType>,
    /// Numbers of an embedding.
    pub dimensions: Option<u32>,
    /// How numbers of an embedding are to be written, in the order of [`ENCODING_FORMATS`].
    pub encoding_formats: [bool; ENCODING_FORMATS.len()],
}

/// The levels of reasoning that servers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningLevel {
    /// No reasoning at all.
    None,
    /// Less than low.
    Minimal,
    /// Low.
    Low,
    /// Medium.
    Medium,
    /// High.
    High,
    /// More than high.
    XHigh,
    /// As much as the server allows.
    Max,
}

impl ReasoningLevel {
    /// Every level, rising.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// The word that a request has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// The kinds of content that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputType {
    /// Text without a form of its own.
    Text,
    /// JSON, with a schema or without.
    Json,
    /// Images.
    Image,
    /// Spoken text.
    Speech,
}

impl OutputType {
    /// The convention's word, a value of `gen_ai.output.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Image => "image",
            Self::Speech => "speech",
        }
    }
}

/// The forms of an embedding's numbers.
pub const ENCODING_FORMATS: [&str; 6] = ["float", "base64", "int8", "uint8", "binary", "ubinary"];

/// One of these numbers, by its place in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knob {
    /// `max_completion_tokens`, beside which OpenAI's older name for it counts for nothing.
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
    /// One of the forms in a list.
    EmbeddingType,
}

impl Sampling {
    /// Takes in a value; of two at one place the last counts, as in every parser.
    pub(crate) fn take(&mut self, knob: Knob, value: Value<'_>) {
        match knob {
            Knob::MaxCompletionTokens | Knob::MaxTokens => self.max_tokens = number(value).and_then(count),
            Knob::Temperature => self.temperature = float(value),
            Knob::TopP => self.top_p = float(value),
            Knob::TopK => self.top_k = float(value),
            Knob::Seed => self.seed = number(value).and_then(|text| str::from_utf8(text).ok()?.parse().ok()),
            Knob::FrequencyPenalty => self.frequency_penalty = float(value),
            Knob::PresencePenalty => self.presence_penalty = float(value),
            Knob::ReasoningLevel => self.reasoning_level = reasoning_level(value),
            Knob::OutputType => self.output_type = output_type(value),
            // Text is in every such list.
            Knob::Modality => match value {
                Value::Word(b"audio") => self.output_type = Some(OutputType::Speech),
                Value::Word(b"image") => self.output_type = Some(OutputType::Image),
                _ => {}
            },
            Knob::Dimensions => {
                self.dimensions = number(value).and_then(count).and_then(|n| n.try_into().ok())
            }
            Knob::EncodingFormat => {
                self.encoding_formats = [false; ENCODING_FORMATS.len()];
                self.add_encoding_format(value);
            }
            Knob::EmbeddingType => self.add_encoding_format(value),
        }
    }
}

impl Sampling {
    fn add_encoding_format(&mut self, value: Value<'_>) {
        let places = self.encoding_formats.iter_mut().zip(ENCODING_FORMATS);
        places.filter(|(_, format)| is_word(value, format)).for_each(|(place, _)| *place = true);
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

/// A number's text, unless there may have been more of it than is carried.
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
