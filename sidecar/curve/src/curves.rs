//! The curves of each model at each upstream: a point for each concurrency range with exchanges, and one for each
//! range of positions.

use std::time::Duration;

use meter::edges::{CONCURRENCY, CONCURRENCY_NAMES, POSITION_NAMES};

use crate::distribution::Distribution;
use crate::knee::Knee;
use crate::reading::{Counts, Reading, Series};

/// All curves, by model and upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The time they cover.
    pub window: Window,
    /// Each model at each upstream with a measurement, sorted by both names.
    pub models: Vec<ModelCurves>,
}

/// The time that curves cover.
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
    /// The model's name on the page.
    pub model: String,
    /// The upstream's name; `None` if the page does not name it.
    pub upstream: Option<String>,
    /// By concurrency, ascending; only ranges with an exchange.
    pub by_concurrency: Vec<ConcurrencyPoint>,
    /// By position in the response, ascending; only ranges with a token.
    pub positions: Vec<PositionSpeed>,
    /// The knee of each objective.
    pub knees: Vec<Knee>,
}

/// The measurements at one range of concurrency.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrencyPoint {
    /// The label of the range.
    pub range: &'static str,
    /// Its least concurrency.
    pub min: u64,
    /// Its greatest concurrency; `None`: open.
    pub max: Option<u64>,
    /// Seconds to the first token.
    pub first_token: Distribution,
    /// Output tokens per second of one exchange, after the first token.
    pub output_rate: Distribution,
    /// Uncached prompt tokens per second until the first token.
    pub input_rate: Distribution,
    /// Output tokens per second of one stream, over the time of all streams of the model, at every concurrency.
    pub observed_rate: Option<f64>,
}

/// The measurements at one range of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionSpeed {
    /// The label of the range.
    pub range: &'static str,
    /// Tokens after the first of a response.
    pub tokens: f64,
    /// Their duration in seconds.
    pub seconds: f64,
}

impl Curves {
    /// Returns the curves of a reading, or only those of one model.
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
        let by_concurrency = CONCURRENCY_NAMES.iter().zip(&counts.by_concurrency).enumerate();
        let by_concurrency = by_concurrency.map(|(at, (range, counts))| ConcurrencyPoint {
            range,
            min: at.checked_sub(1).map_or(1, |below| CONCURRENCY[below] + 1),
            max: CONCURRENCY.get(at).copied(),
            first_token: counts.first_token.clone(),
            output_rate: counts.output_rate.clone(),
            input_rate: counts.input_rate.clone(),
            observed_rate,
        });
        let by_concurrency: Vec<_> = by_concurrency.filter(|point| point.exchanges() > 0.0).collect();
        let positions = POSITION_NAMES.iter().zip(counts.positions);
        let positions = positions.map(|(range, (tokens, seconds))| PositionSpeed { range, tokens, seconds });
        Self {
            model: series.model.clone(),
            upstream: Some(series.upstream.clone()).filter(|name| !name.is_empty()),
            knees: Knee::all(reading, &series.model, &by_concurrency),
            by_concurrency,
            positions: positions.filter(|position| position.tokens > 0.0).collect(),
        }
    }

    /// Returns the model and the upstream, as a heading.
    pub(crate) fn title(&self) -> String {
        self.upstream.as_ref().map_or(self.model.clone(), |upstream| format!("{} at {upstream}", self.model))
    }

    /// Returns the number of streams with a first token or a speed.
    pub fn exchanges(&self) -> f64 {
        self.by_concurrency.iter().map(ConcurrencyPoint::exchanges).sum()
    }
}

impl ConcurrencyPoint {
    /// Returns the number of streams with a first token or a speed.
    pub fn exchanges(&self) -> f64 {
        self.first_token.count().max(self.output_rate.count())
    }

    /// Returns the tokens per second that a share of the streams (0.5, 0.9, 0.99) reaches.
    pub fn speed_reached_by(&self, share: f64) -> Option<f64> {
        self.output_rate.quantile(1.0 - share)
    }

    /// Returns the concurrency of the aggregate estimate: the middle of the range, or its least value if
    /// it is open.
    pub fn middle(&self) -> f64 {
        self.max.map_or(self.min as f64, |max| (self.min + max) as f64 / 2.0)
    }

    /// Returns the estimated tokens per second of all streams while all of them generate: the middle of the range
    /// times the mean speed of one. Streams that wait for their first token generate nothing, so the
    /// server's own rate is lower by their share.
    ///
    /// A stream whose tokens arrive in one burst has a speed that no server has. If the mean exceeds the histogram's last
    /// edge, or the median reaches it, the model's observed rate replaces the mean.
    pub fn aggregate_estimate(&self) -> Option<f64> {
        let (mean, half) = (self.output_rate.mean()?, self.output_rate.quantile(0.5)?);
        let bursts = self.output_rate.last_edge().is_some_and(|last| mean > last || half >= last);
        let one = if bursts { self.observed_rate.map_or(mean, |observed| observed.min(mean)) } else { mean };
        Some(self.middle() * one)
    }
}

impl PositionSpeed {
    /// Returns the seconds per token.
    pub fn seconds_per_token(&self) -> f64 {
        self.seconds / self.tokens
    }

    /// Returns the tokens per second; `None` if their time was too short to measure.
    pub fn tokens_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.tokens / self.seconds)
    }
}
