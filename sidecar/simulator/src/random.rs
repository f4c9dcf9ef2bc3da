//! SplitMix64, the only random generator of this crate.
//!
//! Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014): a counter
//! with a fixed odd stride, and a mixing function over it. It need not be secret. It has to give the
//! same numbers on each machine and in each version, so it is implemented here.
//!
//! The law: each use draws from a [`fork`](SplitMix64::fork) of its own, so that an additional draw in
//! one place (a jittered step) cannot change another (the next word).

/// A generator of 64-bit numbers; equal seeds give equal sequences.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Returns a generator at the start of the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number, uniform over `u64`.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STRIDE);
        mix(self.state)
    }

    /// Returns the next number below `bound`, or 0 if `bound` is 0.
    ///
    /// Uses the high half of a product, whose bias, below `bound` ÷ 2⁶⁴, is negligible here.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns the next number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        // 53 bits: the precision of an f64.
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an independent generator for the purpose `label`; this one does not advance.
    pub fn fork(&self, label: u64) -> Self {
        Self::new(mix(self.state ^ mix(label.wrapping_add(STRIDE))))
    }
}

/// Folds `bytes` into `seed`: equal bytes give equal seeds.
pub(crate) fn fold(seed: u64, bytes: &[u8]) -> u64 {
    // Includes the length, so that a short last word differs from one padded with zeros.
    let mut folded = mix(seed ^ bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        folded = mix(folded.wrapping_add(STRIDE) ^ u64::from_le_bytes(word));
    }
    folded
}

/// 2⁶⁴ ÷ the golden ratio, made odd: the stride of the paper.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The paper's finalizer (variant 13 of Stafford's table).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_matches_the_published_one() {
        // The first outputs for seed 1234567, as in other implementations.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.draw(), 6_457_827_717_110_365_317);
        assert_eq!(random.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = SplitMix64::new(1);
        for _ in 0..1_000 {
            assert!(random.below(7) < 7);
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn fork_neither_advances_nor_repeats_its_parent() {
        let mut parent = SplitMix64::new(3);
        let mut twin = parent.clone();
        let mut fork = parent.fork(1);
        assert_ne!(fork.draw(), parent.fork(2).draw());
        assert_eq!(parent.draw(), twin.draw());
    }

    #[test]
    fn fold_depends_on_each_byte_and_the_length() {
        assert_ne!(fold(1, b"ab"), fold(1, b"ab\0"));
        assert_ne!(fold(1, b"ab"), fold(2, b"ab"));
        assert_eq!(fold(1, b"abcdefghij"), fold(1, b"abcdefghij"));
    }
}
