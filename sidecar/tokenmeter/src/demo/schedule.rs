//! The lengths of the demonstration's steps and responses, so that whole cycles fill the time.

use std::time::Duration;

use simulator::load::CONCURRENCIES;
use simulator::speed::Model;

/// The schedule of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Cycles through all concurrencies; `None` is without end.
    pub(super) cycles: Option<u64>,
    /// The time of a step, including its last response.
    pub(super) step: Duration,
    /// Tokens of each response.
    pub(super) output_tokens: u64,
}

impl Schedule {
    /// Fills `total` with whole cycles of about [`CYCLE`], at least one.
    pub(super) fn of(total: Option<Duration>) -> Self {
        let cycles = total.map(|total| ((total.as_secs_f64() / CYCLE.as_secs_f64()).round() as u64).max(1));
        let cycle = match (total, cycles) {
            (Some(total), Some(cycles)) => total / u32::try_from(cycles).unwrap_or(u32::MAX),
            _ => CYCLE,
        };
        let step = cycle / CONCURRENCIES.len() as u32;
        Self { cycles, step, output_tokens: tokens_within(step / 2) }
    }

    /// Returns the time in which requests may start, so that the last response ends within `left`.
    pub(super) fn starting(&self, concurrency: u32, left: Duration) -> Duration {
        left.saturating_sub(answer(self.output_tokens, concurrency))
    }
}

/// Returns the largest token count, within bounds, of a response that takes at most `time` at any step.
fn tokens_within(time: Duration) -> u64 {
    let most = CONCURRENCIES.into_iter().max().unwrap_or(1);
    (FEWEST..=MOST).rev().find(|tokens| answer(*tokens, most) <= time).unwrap_or(FEWEST)
}

/// Returns the duration of a response, with [`ROOM`].
fn answer(tokens: u64, concurrency: u32) -> Duration {
    let model = Model::default();
    let steps = u32::try_from(tokens).unwrap_or(u32::MAX);
    (model.prefill(super::PROMPT_TOKENS) + model.step(concurrency.into()) * (steps + 1)).mul_f64(ROOM)
}

/// The target time of a cycle: the curve appears twice in a minute.
const CYCLE: Duration = Duration::from_secs(24);

/// The factor for scheduling delays on a busy machine.
const ROOM: f64 = 1.15;

/// The minimum token count: fewer have no meaningful speed.
const FEWEST: u64 = 8;

/// The maximum token count: a paragraph.
const MOST: u64 = 80;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CYCLE, FEWEST, MOST, Schedule};

    #[test]
    fn whole_cycles_fill_the_time() {
        for (seconds, cycles) in [(1, 1), (3, 1), (24, 1), (60, 3), (240, 10)] {
            let total = Duration::from_secs(seconds);
            let schedule = Schedule::of(Some(total));
            assert_eq!(schedule.cycles, Some(cycles), "{seconds}");
            let filled = schedule.step * 4 * u32::try_from(cycles).unwrap();
            assert!(total.abs_diff(filled) < Duration::from_millis(1), "{seconds}: {schedule:?}");
        }
        assert_eq!(Schedule::of(None).cycles, None);
        assert_eq!(Schedule::of(None).step, CYCLE / 4);
    }

    #[test]
    fn responses_end_within_their_step() {
        assert_eq!(Schedule::of(Some(Duration::from_secs(1))).output_tokens, FEWEST);
        assert_eq!(Schedule::of(None).output_tokens, MOST);
        for seconds in [3, 10, 24] {
            let schedule = Schedule::of(Some(Duration::from_secs(seconds)));
            for concurrency in [1, 50] {
                let starting = schedule.starting(concurrency, schedule.step);
                assert!(starting * 3 >= schedule.step, "{seconds}: {schedule:?} starts for {starting:?}");
            }
            assert_eq!(schedule.starting(50, Duration::ZERO), Duration::ZERO);
        }
    }
}
