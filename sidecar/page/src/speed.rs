//! Tokens per second over the last few seconds: running totals sampled once a second, the oldest
//! sample subtracted from what is now. Bounded by [`SAMPLES`] and by the number of model labels.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::limits::SAMPLES;
use crate::source::Model;

/// The last samples of every model's output tokens.
#[derive(Debug, Default)]
pub(crate) struct Speed {
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    tokens: HashMap<String, u64>,
}

impl Speed {
    /// Notes the totals as of `at`.
    pub(crate) fn sample(&mut self, at: Instant, models: &[Model]) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        let tokens = models.iter().map(|model| (model.name.clone(), model.output_tokens)).collect();
        self.samples.push_back(Sample { at, tokens });
    }

    /// Tokens per second of `model` since the oldest sample; a model new since then began at zero.
    /// `None` while there is no sample old enough to mean something.
    pub(crate) fn of(&self, at: Instant, model: &Model) -> Option<f64> {
        let oldest = self.samples.front()?;
        let elapsed = at.saturating_duration_since(oldest.at);
        if elapsed < MEANINGFUL {
            return None;
        }
        let before = oldest.tokens.get(&model.name).copied().unwrap_or(0);
        Some(model.output_tokens.saturating_sub(before) as f64 / elapsed.as_secs_f64())
    }
}

/// A rate over less than this says more about the sampling than about the traffic.
const MEANINGFUL: Duration = Duration::from_millis(500);

#[cfg(test)]
#[path = "speed_tests.rs"]
mod tests;
