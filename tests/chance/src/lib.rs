//! The number of test cases, reproducible random numbers, and the sides that have TLS in a run.
//!
//! Law: an ordinary run is the same each time, so that a failure can be reproduced and a fix verified; a long run
//! (`tests/run --long`) has many more cases, and properties use new seeds.

mod tls;

use proptest::test_runner::{Config, RngSeed};

pub use tls::Side;

/// The factor of cases in a long run.
const LONG_RUN_FACTOR: u32 = 50;

/// Returns true in a long run (`TOKENMETER_LONG` is set in the environment).
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("TOKENMETER_LONG").is_some()
}

/// Returns the configuration of a property with this number of cases in an ordinary run. `PROPTEST_CASES` in the
/// environment overrides the number in both.
#[must_use]
pub fn cases(ordinary: u32) -> Config {
    let long = is_long();
    let requested = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = requested.unwrap_or(if long { ordinary * LONG_RUN_FACTOR } else { ordinary });
    Config {
        cases,
        max_global_rejects: cases.saturating_mul(200),
        rng_seed: if long { RngSeed::Random } else { RngSeed::Fixed(7) },
        // A failure is fixed and kept as a test, not as a file of seeds.
        failure_persistence: None,
        ..Config::default()
    }
}

/// Random numbers that are the same for a seed on every machine (xorshift64*).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Returns the numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next number, 56 bits.
    #[expect(clippy::should_implement_trait, reason = "it is endless, and adapters are not needed")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns an index below `length`, which is not 0.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("it is less than a usize")
    }

    /// Returns one of the elements, of which there is at least one.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.place(of.len())].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn sequence_depends_on_the_seed() {
        let of = |seed| {
            let mut chance = Chance::new(seed);
            std::iter::repeat_with(move || chance.below(1 << 40)).take(64).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let all: std::collections::BTreeSet<_> = of(1).into_iter().collect();
        assert_eq!(all.len(), 64, "no repetition");
    }
}
