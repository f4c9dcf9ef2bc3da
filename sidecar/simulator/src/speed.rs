//! The speed of a continuously batching server, as arithmetic.
//!
//! All running sequences advance together, one decode step at a time. A step has a fixed cost
//! (reading the weights) and a cost per sequence (its attention and sampling), so each user's speed
//! falls as others join while the sum still rises. The first token waits for a seat in the batch and
//! for the prompt to be read.
//!
//! The law: no clock and no I/O. Durations are virtual; [`Model::real`] divides them by the factor,
//! and whoever sleeps does it elsewhere.

use std::time::Duration;

use crate::random::SplitMix64;

/// How fast a simulated server is. Durations are virtual: as if `factor` were 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Cost of one decode step, however many sequences take part.
    pub step_base: Duration,
    /// What each running sequence adds to a step.
    pub step_per_sequence: Duration,
    /// Cost of admitting a prompt of any length: tokenising, scheduling.
    pub prefill_base: Duration,
    /// Prompt tokens read per second.
    pub prefill_tokens_per_second: f64,
    /// Sequences that may run at once; further ones queue, first come first served. At least 1.
    pub max_num_seqs: u32,
    /// Most tokens a sequence may gain in one step; 1 is a server without speculation.
    pub burst: u32,
    /// The chance, 0 to 1, that each further drafted token of a burst is accepted.
    pub acceptance: f64,
    /// How far a step may stray from its cost, as a share of it: 0.1 is ±10 %.
    pub jitter: f64,
    /// Virtual seconds per real second; infinite is a server that never waits.
    pub factor: f64,
}

impl Default for Model {
    /// A mid-sized model on one current GPU: about 80 tokens/s alone, 34 for each of fifty.
    fn default() -> Self {
        Self {
            step_base: Duration::from_micros(12_000),
            step_per_sequence: Duration::from_micros(350),
            prefill_base: Duration::from_millis(30),
            prefill_tokens_per_second: 8_000.0,
            max_num_seqs: 256,
            burst: 1,
            acceptance: 0.7,
            jitter: 0.05,
            factor: 1.0,
        }
    }
}

impl Model {
    /// A server that never waits, for tests and benches of what is in front of it.
    pub fn instant() -> Self {
        Self { factor: f64::INFINITY, ..Self::default() }
    }

    /// The virtual time of one decode step with `running` sequences, without jitter.
    pub fn step(&self, running: u64) -> Duration {
        let sequences = running.clamp(1, u64::from(self.max_num_seqs.max(1)));
        self.step_base + self.step_per_sequence.saturating_mul(u32::try_from(sequences).unwrap_or(u32::MAX))
    }

    /// [`step`](Self::step) with jitter drawn from `noise`.
    pub fn jittered_step(&self, running: u64, noise: &mut SplitMix64) -> Duration {
        let stray = self.jitter.clamp(0.0, 1.0) * (2.0 * noise.unit() - 1.0);
        self.step(running).mul_f64(1.0 + stray)
    }

    /// The virtual time from a seat in the batch to the first token.
    pub fn prefill(&self, prompt_tokens: u64) -> Duration {
        let seconds = prompt_tokens as f64 / self.prefill_tokens_per_second;
        self.prefill_base + Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST)
    }

    /// The tokens one sequence gains in a step; 1 to `most`.
    pub fn tokens_per_step(&self, most: u32, draft: &mut SplitMix64) -> u32 {
        let mut tokens = 1;
        while tokens < most && draft.unit() < self.acceptance {
            tokens += 1;
        }
        tokens
    }

    /// The real time to wait for a virtual `duration`.
    pub fn real(&self, duration: Duration) -> Duration {
        // An infinite factor gives 0; a factor that is no speed at all is capped, not a panic.
        Duration::try_from_secs_f64(duration.as_secs_f64() / self.factor).unwrap_or(LONGEST)
    }

    /// Virtual tokens per second of one sequence beside `running` − 1 others, from its second token.
    pub fn tokens_per_second(&self, running: u64) -> f64 {
        1.0 / self.step(running).as_secs_f64()
    }
}

/// An hour: longer than any caller waits, and far from overflow when added to an instant.
const LONGEST: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_slows_and_the_sum_grows_with_concurrency() {
        let model = Model::default();
        let mut before = (f64::INFINITY, 0.0);
        for running in [1, 10, 25, 50, 256] {
            let each = model.tokens_per_second(running);
            let sum = each * running as f64;
            assert!(each < before.0 && sum > before.1, "{running}: {each} {sum}");
            before = (each, sum);
        }
    }

    #[test]
    fn a_full_batch_gets_no_slower() {
        let model = Model::default();
        assert_eq!(model.step(256), model.step(10_000));
    }

    #[test]
    fn the_first_token_waits_for_the_prompt() {
        let model = Model::default();
        assert!(model.prefill(8_000) > model.prefill(80));
        assert_eq!(model.prefill(8_000) - model.prefill(0), Duration::from_secs(1));
    }

    #[test]
    fn jitter_strays_no_further_than_it_says() {
        let model = Model::default();
        let mut noise = SplitMix64::new(1);
        let step = model.step(4).as_secs_f64();
        for _ in 0..1_000 {
            let jittered = model.jittered_step(4, &mut noise).as_secs_f64();
            assert!((jittered / step - 1.0).abs() < 0.0501);
        }
    }

    #[test]
    fn bursts_stay_within_their_bound_and_reach_it() {
        let model = Model::default();
        let mut draft = SplitMix64::new(1);
        let bursts: Vec<u32> = (0..200).map(|_| model.tokens_per_step(4, &mut draft)).collect();
        assert_eq!(bursts.iter().min(), Some(&1));
        assert_eq!(bursts.iter().max(), Some(&4));
        assert_eq!(model.tokens_per_step(1, &mut draft), 1);
    }

    #[test]
    fn the_factor_turns_virtual_time_into_real() {
        let real = |factor| {
            let model = Model { factor, ..Model::default() };
            model.real(Duration::from_secs(2))
        };
        assert_eq!(real(4.0), Duration::from_millis(500));
        assert_eq!(real(f64::INFINITY), Duration::ZERO);
        assert_eq!(real(0.0), LONGEST);
    }
}
