//! The data plane's only source of random numbers: for ids, never for secrets. It hashes a counter with keys that the
//! operating system gave to the worker's thread, so a number costs no system call.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The source of one thread's ids.
#[derive(Debug)]
pub struct IdSource {
    keys: RandomState,
    drawn: Cell<u64>,
}

impl IdSource {
    /// A source with its own keys, different in every thread and process.
    pub fn new() -> Self {
        Self { keys: RandomState::new(), drawn: Cell::new(0) }
    }

    /// A new 64-bit number.
    pub fn bits(&self) -> u64 {
        let drawn = self.drawn.get();
        self.drawn.set(drawn.wrapping_add(1));
        self.keys.hash_one(drawn)
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
