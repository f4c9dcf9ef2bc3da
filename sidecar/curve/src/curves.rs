//! The curves of each model at each upstream: one point for each concurrency that was seen, one for each range of
//! positions.

use std::time::Duration;

use meter::edges::{CONCURRENCY, CONCURRENCY_NAMES, POSITION_NAMES};

use crate::distribution::Distribution;
use crate::knee::Knee;
use crate::reading::{Counts, Reading, Series};

/// The measurements, by model and upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// Over which time.
    pub window: Window,
    /// Each model at each upstream where anything of it was timed, sorted by both names.
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

/// One model at one upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCurves {
    /// The model's name, as the page has it.
    pub model: String,
    /// The upstream's name; `None` where the page does not name it.
    pub upstream: Option<String>,
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
    /// Output tokens per second of one stream over the time of all streams of the model, at every concurrency.
    pub observed_rate: Option<f64>,
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
        let wanted = reading.timed().filter(|(series, _)| model.is_none_or(|model| model == series.model));
        let models = wanted.map(|(series, counts)| ModelCurves::of(reading, series, counts)).collect();
        Self { window, models }
    }
}

impl ModelCurves {
    fn of(reading: &Reading, series: &Series, counts: &Counts) -> Self {
        let (tokens, seconds) =
            counts.positions.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let observed_rate = (seconds > 0.0).then(|| tokens / seconds);
        let crowds = CONCURRENCY_NAMES.iter().zip(&counts.crowds).enumerate();
        let crowds = crowds.map(|(at, (range, loads))| Crowd {
            range,
            least: at.checked_sub(1).map_or(1, |below| CONCURRENCY[below] + 1),
            most: CONCURRENCY.get(at).copied(),
            first_token: loads.first_token.clone(),
            output_rate: loads.output_rate.clone(),
            input_rate: loads.input_rate.clone(),
            observed_rate,
        });
        let crowds: Vec<_> = crowds.filter(|crowd| crowd.exchanges() > 0.0).collect();
        let positions = POSITION_NAMES.iter().zip(counts.positions);
        let positions = positions.map(|(range, (tokens, seconds))| PositionSpeed { range, tokens, seconds });
        Self {
            model: series.model.clone(),
            upstream: Some(series.upstream.clone()).filter(|name| !name.is_empty()),
            knees: Knee::all(reading, &series.model, &crowds),
            crowds,
            positions: positions.filter(|position| position.tokens > 0.0).collect(),
        }
    }

    /// The model and the upstream, as a heading.
    pub(crate) fn title(&self) -> String {
        self.upstream.as_ref().map_or(self.model.clone(), |upstream| format!("{} at {upstream}", self.model))
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
    ///
    /// A stream whose tokens come in one burst has a speed that no server has. Where such streams make the mean, which
    /// then exceeds the histogram's last edge, or are half of all, the model's observed rate takes its place.
    pub fn aggregate_estimate(&self) -> Option<f64> {
        let (mean, half) = (self.output_rate.mean()?, self.output_rate.quantile(0.5)?);
        let bursts = self.output_rate.last_edge().is_some_and(|last| mean > last || half >= last);
        let one = if bursts { self.observed_rate.map_or(mean, |observed| observed.min(mean)) } else { mean };
        Some(self.middle() * one)
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
