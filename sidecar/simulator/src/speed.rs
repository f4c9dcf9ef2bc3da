//! The speed of a continuously batching server, as arithmetic.
//!
//! All running sequences advance together, one decode step at a time. A step has a fixed cost
//! (reading the weights) and a cost per sequence (its attention and sampling), so each user's speed
//! falls with concurrency while the sum still rises. The first token waits for a slot in the batch and
//! for the prompt's prefill.
//!
//! The law: no clock and no I/O. Durations are virtual; [`Model::real`] divides them by the factor,
//! and the caller sleeps.

use std::time::Duration;

use crate::random::SplitMix64;

/// The speed of a simulated server. Durations are virtual: as if `factor` were 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Cost of one decode step, independent of the number of sequences.
    pub step_base: Duration,
    /// Cost per running sequence and step.
    pub step_per_sequence: Duration,
    /// Cost of admitting a prompt of any length: tokenizing, scheduling.
    pub prefill_base: Duration,
    /// Prompt tokens read per second.
    pub prefill_tokens_per_second: f64,
    /// Maximum running sequences; further ones queue, first come first served. At least 1.
    pub max_num_seqs: u32,
    /// Maximum tokens of a sequence per step; 1 is a server without speculation.
    pub burst: u32,
    /// The probability, 0 to 1, that each further drafted token of a burst is accepted.
    pub acceptance: f64,
    /// Maximum deviation of a step from its cost, as a share of it: 0.1 is ±10 %.
    pub jitter: f64,
    /// Virtual seconds per real second; infinite means no delays.
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
    /// Returns a server without delays, for tests and benches of the proxy before it.
    pub fn instant() -> Self {
        Self { factor: f64::INFINITY, ..Self::default() }
    }

    /// Returns the virtual time of one decode step with `running` sequences, without jitter.
    pub fn step(&self, running: u64) -> Duration {
        let sequences = running.clamp(1, u64::from(self.max_num_seqs.max(1)));
        self.step_base + self.step_per_sequence.saturating_mul(u32::try_from(sequences).unwrap_or(u32::MAX))
    }

    /// Returns [`step`](Self::step) with jitter drawn from `noise`.
    pub fn jittered_step(&self, running: u64, noise: &mut SplitMix64) -> Duration {
        let stray = self.jitter.clamp(0.0, 1.0) * (2.0 * noise.unit() - 1.0);
        self.step(running).mul_f64(1.0 + stray)
    }

    /// Returns the virtual time from a slot in the batch to the first token.
    pub fn prefill(&self, prompt_tokens: u64) -> Duration {
        let seconds = prompt_tokens as f64 / self.prefill_tokens_per_second;
        self.prefill_base + Duration::try_from_secs_f64(seconds).unwrap_or(MAX_DURATION)
    }

    /// Returns the tokens of one sequence in a step, 1 to `max`.
    pub fn tokens_per_step(&self, max: u32, draft: &mut SplitMix64) -> u32 {
        let mut tokens = 1;
        while tokens < max && draft.unit() < self.acceptance {
            tokens += 1;
        }
        tokens
    }

    /// Returns the real time of a virtual `duration`.
    pub fn real(&self, duration: Duration) -> Duration {
        // An infinite factor gives 0; an invalid factor is capped and does not panic.
        Duration::try_from_secs_f64(duration.as_secs_f64() / self.factor).unwrap_or(MAX_DURATION)
    }

    /// Returns the virtual tokens per second of one of `running` sequences, from its second token on.
    pub fn tokens_per_second(&self, running: u64) -> f64 {
        1.0 / self.step(running).as_secs_f64()
    }
}

/// Longer than any caller waits, and far from overflow when added to an instant.
const MAX_DURATION: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_slows_each_user_and_raises_the_sum() {
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
    fn step_time_is_capped_at_a_full_batch() {
        let model = Model::default();
        assert_eq!(model.step(256), model.step(10_000));
    }

    #[test]
    fn prefill_time_grows_with_the_prompt() {
        let model = Model::default();
        assert!(model.prefill(8_000) > model.prefill(80));
        assert_eq!(model.prefill(8_000) - model.prefill(0), Duration::from_secs(1));
    }

    #[test]
    fn jitter_stays_within_its_bound() {
        let model = Model::default();
        let mut noise = SplitMix64::new(1);
        let step = model.step(4).as_secs_f64();
        for _ in 0..1_000 {
            let jittered = model.jittered_step(4, &mut noise).as_secs_f64();
            assert!((jittered / step - 1.0).abs() < 0.0501);
        }
    }

    #[test]
    fn bursts_reach_and_respect_their_bound() {
        let model = Model::default();
        let mut draft = SplitMix64::new(1);
        let bursts: Vec<u32> = (0..200).map(|_| model.tokens_per_step(4, &mut draft)).collect();
        assert_eq!(bursts.iter().min(), Some(&1));
        assert_eq!(bursts.iter().max(), Some(&4));
        assert_eq!(model.tokens_per_step(1, &mut draft), 1);
    }

    #[test]
    fn factor_scales_virtual_to_real_time() {
        let real = |factor| {
            let model = Model { factor, ..Model::default() };
            model.real(Duration::from_secs(2))
        };
        assert_eq!(real(4.0), Duration::from_millis(500));
        assert_eq!(real(f64::INFINITY), Duration::ZERO);
        assert_eq!(real(0.0), MAX_DURATION);
    }
}
