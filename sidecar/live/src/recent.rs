//! The current numbers of a scope: means and counts of the last seconds.

use std::collections::VecDeque;

use metrics::units;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::track::{SECONDS_PER_HOUR, Span};

/// The current rates and counts of a scope, over the last 10 or 60 seconds, or the time since the first sample if that is
/// shorter: a single second jumps with each exchange that ends. All members are `null` before the first second ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    /// Output tokens per second, counted while they arrive; for tenants, of exchanges that ended.
    pub output_tokens_per_second_10s: Option<f64>,
    /// Prompt tokens per second, cached ones included, of exchanges that ended.
    pub input_tokens_per_second_10s: Option<f64>,
    /// Exchanges that ended.
    pub exchanges_60s: Option<u64>,
    /// Exchanges that failed.
    pub errors_60s: Option<u64>,
    /// Exchanges that the client left.
    pub aborts_60s: Option<u64>,
    /// Spend per hour, in `Now::currency`; `null` without a price book.
    pub spend_per_hour_60s: Option<f64>,
}

/// The growth of the counts in the last 60 seconds. Samples without growth need no memory.
#[derive(Debug, Default)]
pub(crate) struct RecentGrowth(VecDeque<Growth>);

/// The growth between two samples.
#[derive(Debug)]
struct Growth {
    before: u64,
    second: u64,
    output_tokens: u64,
    input_tokens: u64,
    exchanges: u64,
    errors: u64,
    aborts: u64,
    spend_pico: i128,
}

impl RecentGrowth {
    /// Adds the growth of a sample, and returns the current numbers.
    pub(crate) fn add(&mut self, span: Span, growth: &Counts, has_prices: bool) -> Recent {
        let Counts { output_tokens, input_tokens, exchanges, errors, aborts, spend_pico, .. } = *growth;
        let Span { before, second, .. } = span;
        self.0.retain(|old| old.second + LONG_S > second);
        if output_tokens > 0 || input_tokens > 0 || exchanges > 0 || spend_pico > 0 {
            let last =
                Growth { before, second, output_tokens, input_tokens, exchanges, errors, aborts, spend_pico };
            self.0.push_back(last);
        }
        let sum = |window: u64, of: fn(&Growth) -> f64| -> f64 {
            let parts = self.0.iter().map(|growth| growth.share_in(window, second) * of(growth));
            // The `sum` of nothing is -0.0, which is shown with its sign.
            parts.fold(0.0, |sum, part| sum + part)
        };
        let rate = |window: u64, of| Some(sum(window, of) / window.min(second).max(1) as f64);
        let count = |of| Some(sum(LONG_S, of).round() as u64);
        let spend_per_second = |growth: &Growth| units(growth.spend_pico);
        Recent {
            output_tokens_per_second_10s: rate(SHORT_S, |growth| growth.output_tokens as f64),
            input_tokens_per_second_10s: rate(SHORT_S, |growth| growth.input_tokens as f64),
            exchanges_60s: count(|growth| growth.exchanges as f64),
            errors_60s: count(|growth| growth.errors as f64),
            aborts_60s: count(|growth| growth.aborts as f64),
            spend_per_hour_60s: rate(LONG_S, spend_per_second)
                .filter(|_| has_prices)
                .map(|spend| spend * SECONDS_PER_HOUR),
        }
    }
}

impl Growth {
    /// Returns the share of the growth that belongs to the last `window` seconds: it is even over its own seconds.
    fn share_in(&self, window: u64, last: u64) -> f64 {
        let from = self.before.max(last.saturating_sub(window));
        self.second.saturating_sub(from) as f64 / (self.second - self.before) as f64
    }
}

/// Seconds of the rates of tokens.
const SHORT_S: u64 = 10;

/// Seconds of the counts of exchanges and of the spend, which come in single exchanges.
const LONG_S: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_without_traffic_has_no_sign() {
        let span = Span { before: 4, second: 5, seconds: 1.0 };
        let recent = RecentGrowth::default().add(span, &Counts::default(), true);
        let rates = [recent.output_tokens_per_second_10s, recent.spend_per_hour_60s];
        assert!(rates.iter().all(|rate| rate.is_some_and(f64::is_sign_positive)), "{rates:?}");
    }
}
