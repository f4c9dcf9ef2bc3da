//! The data plane's only source of random numbers: for ids, never for secrets. Its two keys are random numbers of the
//! operating system, different in every thread and process, so a number costs no system call and few instructions
//! (Wang Yi's `wyrand`).

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The source of one thread's ids.
#[derive(Debug)]
pub struct IdSource {
    key: u64,
    state: Cell<u64>,
}

impl IdSource {
    /// A source with its own keys, different in every thread and process.
    pub fn new() -> Self {
        let keys = RandomState::new();
        Self { key: keys.hash_one(0), state: Cell::new(keys.hash_one(1)) }
    }

    /// A new 64-bit number.
    pub fn bits(&self) -> u64 {
        /// The step of `wyrand`: odd, so that the state repeats after 2^64 numbers.
        const STEP: u64 = 0xa076_1d64_78bd_642f;
        let state = self.state.get().wrapping_add(STEP);
        self.state.set(state);
        let product = u128::from(state) * u128::from(state ^ self.key);
        (product >> 64) as u64 ^ product as u64
    }

    /// A new 128-bit number.
    pub fn wide(&self) -> u128 {
        (u128::from(self.bits()) << 64) | u128::from(self.bits())
    }
}

impl Default for IdSource {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::IdSource;

    #[test]
    fn ids_are_unique_across_threads() {
        let draw = || {
            let chance = IdSource::new();
            (0..10_000).map(|_| chance.bits()).collect::<Vec<_>>()
        };
        let elsewhere = std::thread::spawn(draw).join().unwrap();
        let all: Vec<u64> = [draw(), draw(), elsewhere].concat();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 30_000);
        // Of 30000 fair draws, a bit is set less often than this in fewer than one of 10^12 runs.
        for bit in 0..64 {
            let set = all.iter().filter(|drawn| *drawn >> bit & 1 == 1).count();
            assert!((14_300..15_700).contains(&set), "bit {bit} was set {set} times");
        }
    }
}
