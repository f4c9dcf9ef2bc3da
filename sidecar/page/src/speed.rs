//! Tokens per second over the last few seconds: totals are sampled once per second, and the oldest sample is subtracted
//! from the current total. Memory is bounded by [`MAX_SAMPLES`] and the number of model labels.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::limits::MAX_SAMPLES;
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
    /// Adds a sample of the totals at `at`.
    pub(crate) fn sample(&mut self, at: Instant, models: &[Model]) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        let tokens = models.iter().map(|model| (model.name.clone(), model.output_tokens)).collect();
        self.samples.push_back(Sample { at, tokens });
    }

    /// Returns the tokens per second of `model` since the oldest sample; a newer model began at zero. `None` while
    /// the oldest sample is younger than [`MIN_WINDOW`].
    pub(crate) fn of(&self, at: Instant, model: &Model) -> Option<f64> {
        let oldest = self.samples.front()?;
        let elapsed = at.saturating_duration_since(oldest.at);
        if elapsed < MIN_WINDOW {
            return None;
        }
        let before = oldest.tokens.get(&model.name).copied().unwrap_or(0);
        Some(model.output_tokens.saturating_sub(before) as f64 / elapsed.as_secs_f64())
    }
}

/// Minimum window of a rate; over a shorter one the sampling error dominates.
const MIN_WINDOW: Duration = Duration::from_millis(500);

#[cfg(test)]
#[path = "speed_tests.rs"]
mod tests;
