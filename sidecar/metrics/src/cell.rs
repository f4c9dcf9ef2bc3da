//! The smallest things a worker writes. The law: one writer, any number of readers, so an addition
//! is a relaxed load and a relaxed store and never a locked instruction. Cells are added to each
//! other to sum the workers.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::thread;

/// Adding another of the same kind to oneself, which is how a scrape sums the workers.
pub(crate) trait Absorb {
    /// Adds all of `other`. Only `self`'s one writer may call it.
    fn absorb(&self, other: &Self);
}

/// A whole number.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Nothing counted yet.
    pub(crate) const fn zero() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds, not past the end: a server may claim any number of tokens. Only the one writer may call it.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().saturating_add(n), Relaxed);
    }

    /// Subtracts, not below zero: a gauge may not go round because a caller miscounted.
    pub(crate) fn take(&self, n: u64) {
        self.0.store(self.get().saturating_sub(n), Relaxed);
    }

    /// The number as the writer last left it.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Absorb for Count {
    fn absorb(&self, other: &Self) {
        self.add(other.get());
    }
}

/// A sum of whole nanoseconds or of whole millionths, held as the bits of an f64: exact up to 2^53
/// (104 days of summed time), then rounded to sixteen digits, where a u64 would go round after
/// two weeks of sixteen thousand streams.
#[derive(Debug, Default)]
pub(crate) struct Sum(AtomicU64);

impl Sum {
    /// Adds; only the one writer may call it.
    pub(crate) fn add(&self, whole: u64) {
        self.set(self.get() + whole as f64);
    }

    /// Adds what another sum came to; only the one writer may call it.
    pub(crate) fn add_sum(&self, other: f64) {
        self.set(self.get() + other);
    }

    /// The sum as the writer last left it.
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// The sum in seconds, if it is one of nanoseconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.get() / 1e9
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }
}

impl Absorb for Sum {
    fn absorb(&self, other: &Self) {
        self.add_sum(other.get());
    }
}

/// Makes several cells one: a reader sees all of a write or nothing of it. The writer never waits;
/// a reader that came in the middle reads again. (A sequence lock whose data are atomics, so that a
/// torn read is a wrong number that is thrown away, and nothing worse.)
#[derive(Debug, Default)]
pub(crate) struct Turn(AtomicU64);

impl Turn {
    /// Lets `write` change the cells; only the one writer may call it.
    pub(crate) fn write(&self, write: impl FnOnce()) {
        // Odd while it writes. The fence keeps the cells' stores behind this one.
        let turn = self.0.load(Relaxed);
        self.0.store(turn.wrapping_add(1), Relaxed);
        fence(Release);
        write();
        self.0.store(turn.wrapping_add(2), Release);
    }

    /// What `read` finds in the cells between two writes; or `Err` with what it found at last, if
    /// the writer was in the middle of one all the time: it was put to sleep there.
    pub(crate) fn read<T>(&self, mut read: impl FnMut() -> T) -> Result<T, T> {
        for attempt in 0..ATTEMPTS {
            let before = self.0.load(Acquire);
            if before.is_multiple_of(2) {
                let found = read();
                // The fence keeps the cells' loads before the next one.
                fence(Acquire);
                if self.0.load(Relaxed) == before {
                    return Ok(found);
                }
            }
            if attempt >= SPINS {
                thread::yield_now();
            }
        }
        Err(read())
    }
}

/// Readings before a writer that does not finish is taken to sleep. A write takes 50 ns.
const ATTEMPTS: u32 = 50_000;

/// Readings before the reader gives way to others between them.
const SPINS: u32 = 100;

impl<T: Absorb, const N: usize> Absorb for [T; N] {
    fn absorb(&self, other: &Self) {
        for (mine, theirs) in self.iter().zip(other) {
            mine.absorb(theirs);
        }
    }
}

#[cfg(test)]
mod tests;
