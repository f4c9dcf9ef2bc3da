//! How a request asks for its answers to be drawn. Numbers only, each as exact as it was written;
//! what is no number, or none that can be, was not said.

use crate::frame::count;
use crate::json::Value;
use crate::limits::CARRY_BYTES;

/// How a request asks for its answers to be drawn: numbers only, where they were said.
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
}

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
        }
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
