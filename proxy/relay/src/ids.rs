//! The data plane's only source of random numbers: for ids, and for nothing that must stay a secret. It is a
//! hash of a counter under keys that the operating system gave the worker's thread, so drawing from
//! it needs no system call.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The source of one worker's ids.
#[derive(Debug)]
pub(crate) struct IdSource {
    keys: RandomState,
    drawn: Cell<u64>,
}

impl IdSource {
    /// A source, unlike that of any other thread or process.
    pub(crate) fn new() -> Self {
        Self { keys: RandomState::new(), drawn: Cell::new(0) }
    }

    /// 64 bits that were not drawn before.
    pub(crate) fn bits(&self) -> u64 {
        let drawn = self.drawn.get();
        self.drawn.set(drawn.wrapping_add(1));
        self.keys.hash_one(drawn)
    }

    /// 128 bits.
    pub(crate) fn wide(&self) -> u128 {
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
    fn nothing_comes_twice_on_any_thread() {
        let draw = || {
            let chance = IdSource::new();
            (0..10_000).map(|_| chance.bits()).collect::<Vec<_>>()
        };
        let elsewhere = std::thread::spawn(draw).join().unwrap();
        let all: Vec<u64> = [draw(), draw(), elsewhere].concat();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 30_000);
        // Of 30000 fair draws, fewer than one in 10^12 has a bit set less often than this.
        for bit in 0..64 {
            let set = all.iter().filter(|drawn| *drawn >> bit & 1 == 1).count();
            assert!((14_300..15_700).contains(&set), "bit {bit} was set {set} times");
        }
    }
}
