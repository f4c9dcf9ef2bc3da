//! How often tests try, and the numbers of chance they try.
//!
//! Law: an ordinary run tries the same each time, so that what fails can be seen to be mended; a long one
//! (`tests/run --long`) tries much more, and properties something new.

use proptest::test_runner::{Config, RngSeed};

/// By how much the properties of a long run have more cases.
const LONG: u32 = 50;

/// Whether this is a long run, which `TOKENMETER_LONG` in the environment says.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("TOKENMETER_LONG").is_some()
}

/// How a property is tried: with so many cases in an ordinary run. `PROPTEST_CASES` in the environment asks
/// for another number, in both.
#[must_use]
pub fn cases(ordinary: u32) -> Config {
    let long = is_long();
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.unwrap_or(if long { ordinary * LONG } else { ordinary });
    Config {
        cases,
        max_global_rejects: cases.saturating_mul(200),
        rng_seed: if long { RngSeed::Random } else { RngSeed::Fixed(7) },
        // What was found is mended and kept as a test, not as a file of seeds.
        failure_persistence: None,
        ..Config::default()
    }
}

/// Numbers of chance that are the same for one seed on every machine (xorshift64*).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Those of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 56 bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end, and nobody wants an adapter of it")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    /// A number below another, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A place in what is so long, which is not empty.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("it is less than a usize")
    }

    /// One of what is not empty.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.place(of.len())].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn a_seed_has_its_numbers_and_another_has_others() {
        let of = |seed| {
            let mut chance = Chance::new(seed);
            std::iter::repeat_with(move || chance.below(1 << 40)).take(64).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let all: std::collections::BTreeSet<_> = of(1).into_iter().collect();
        assert_eq!(all.len(), 64, "none comes twice so soon");
    }
}
