//! The curves of each model: one point for each concurrency that was seen, one for each range of
//! positions.

use std::time::Duration;

use meter::edges::{CONCURRENCY, CONCURRENCY_NAMES, POSITION_NAMES};

use crate::distribution::Distribution;
use crate::knee::Knee;
use crate::reading::{Counts, Reading};

/// What was measured, by model.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Over which time.
    pub window: Window,
    /// Each model of which anything was timed, sorted by name.
    pub models: Vec<ModelCurves>,
}

/// Over which time was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Since the proxy started.
    SinceStart,
    /// Between two readings this far apart.
    Last(Duration),
}

/// One model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCurves {
    /// Its name, as the page has it.
    pub model: String,
    /// By concurrency, rising; those with an exchange.
    pub crowds: Vec<Crowd>,
    /// By position in the answer, rising; those with a token.
    pub positions: Vec<PositionSpeed>,
    /// Up to where each objective is kept.
    pub knees: Vec<Knee>,
}

/// What the exchanges saw that shared the server with so many.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowd {
    /// The range of concurrencies, as the label has it.
    pub range: &'static str,
    /// Its least.
    pub least: u64,
    /// Its most; `None` is open.
    pub most: Option<u64>,
    /// Seconds to the first token.
    pub first_token: Distribution,
    /// Output tokens per second of one exchange, from its second token on.
    pub output_rate: Distribution,
    /// Uncached prompt tokens per second until the first token.
    pub input_rate: Distribution,
}

/// What tokens took at one range of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionSpeed {
    /// The range of positions, as the label has it.
    pub range: &'static str,
    /// Tokens after the first of an answer.
    pub tokens: f64,
    /// The time they took.
    pub seconds: f64,
}

impl Curves {
    /// The curves of a reading; of one model, if that is all that is wanted.
    pub fn of(reading: &Reading, window: Window, model: Option<&str>) -> Self {
        let wanted = reading.models().filter(|name| model.is_none_or(|model| model == *name));
        let models = wanted.map(|name| ModelCurves::of(reading, name, &reading.models[name])).collect();
        Self { window, models }
    }
}

impl ModelCurves {
    fn of(reading: &Reading, model: &str, counts: &Counts) -> Self {
        let crowds = CONCURRENCY_NAMES.iter().zip(&counts.crowds).enumerate();
        let crowds = crowds.map(|(at, (range, loads))| Crowd {
            range,
            least: at.checked_sub(1).map_or(1, |below| CONCURRENCY[below] + 1),
            most: CONCURRENCY.get(at).copied(),
            first_token: loads.first_token.clone(),
            output_rate: loads.output_rate.clone(),
            input_rate: loads.input_rate.clone(),
        });
        let crowds: Vec<_> = crowds.filter(|crowd| crowd.exchanges() > 0.0).collect();
        let positions = POSITION_NAMES.iter().zip(counts.positions);
        let positions = positions.map(|(range, (tokens, seconds))| PositionSpeed { range, tokens, seconds });
        Self {
            model: model.to_owned(),
            knees: Knee::all(reading, model, &crowds),
            crowds,
            positions: positions.filter(|position| position.tokens > 0.0).collect(),
        }
    }

    /// Streams that had a first token, or a speed.
    pub fn exchanges(&self) -> f64 {
        self.crowds.iter().map(Crowd::exchanges).sum()
    }
}

impl Crowd {
    /// Streams that had a first token, or a speed.
    pub fn exchanges(&self) -> f64 {
        self.first_token.count().max(self.output_rate.count())
    }

    /// Tokens per second that a share of the streams reaches: 0.5, 0.9, 0.99.
    pub fn speed_reached_by(&self, share: f64) -> Option<f64> {
        self.output_rate.quantile(1.0 - share)
    }

    /// The concurrency the aggregate is estimated for: the middle of the range, or its least where
    /// it is open.
    pub fn middle(&self) -> f64 {
        self.most.map_or(self.least as f64, |most| (self.least + most) as f64 / 2.0)
    }

    /// Tokens per second of all streams together while all of them generate: the middle of the range
    /// times the mean speed of one. Streams that wait for their first token generate nothing, so the
    /// server's own rate is lower by their share.
    pub fn aggregate_estimate(&self) -> Option<f64> {
        Some(self.middle() * self.output_rate.mean()?)
    }
}

impl PositionSpeed {
    /// Seconds one token took.
    pub fn seconds_per_token(&self) -> f64 {
        self.seconds / self.tokens
    }

    /// Tokens per second; `None` if they took no time that could be measured.
    pub fn tokens_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.tokens / self.seconds)
    }
}
