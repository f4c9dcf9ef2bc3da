//! Single-writer cells. Invariant: one writer, any number of readers, so that an addition is a relaxed load and a
//! relaxed store, never a locked instruction. A scrape merges the cells of all workers.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::thread;

/// The sum of two cells of one type; a scrape sums the workers with it.
pub(crate) trait Merge {
    /// Adds all of `other`. Only `self`'s one writer may call it.
    fn merge(&self, other: &Self);
}

/// A counter or gauge of whole numbers.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Returns a count of 0.
    pub(crate) const fn zero() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds, saturating: a server may report any number of tokens. Only the writer may call it.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().saturating_add(n), Relaxed);
    }

    /// Subtracts, not below zero: a caller's mistake must not wrap a gauge. Only the writer may call it.
    pub(crate) fn take(&self, n: u64) {
        self.0.store(self.get().saturating_sub(n), Relaxed);
    }

    /// Returns the last value written.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Merge for Count {
    fn merge(&self, other: &Self) {
        self.add(other.get());
    }
}

/// A sum of whole nanoseconds or millionths, stored as the bits of an f64: exact up to 2^53 (104 days of summed
/// time), then rounded to sixteen digits. A u64 would wrap after two weeks of sixteen thousand streams.
#[derive(Debug, Default)]
pub(crate) struct Sum(AtomicU64);

impl Sum {
    /// Adds a whole number. Only the writer may call it.
    pub(crate) fn add(&self, whole: u64) {
        self.set(self.get() + whole as f64);
    }

    /// Adds another sum. Only the writer may call it.
    pub(crate) fn add_sum(&self, other: f64) {
        self.set(self.get() + other);
    }

    /// Returns the last value written.
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// Returns a sum of nanoseconds in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.get() / 1e9
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }
}

impl Merge for Sum {
    fn merge(&self, other: &Self) {
        self.add_sum(other.get());
    }
}

/// The value that was set last, of all workers. Invariant: time 0 means no value, so a cell without a value is never later.
/// A reader that overlaps a write may pair the new value with the time before, which only the next merge notices.
#[derive(Debug, Default)]
pub(crate) struct Last {
    value: AtomicU64,
    at: AtomicU64,
}

impl Last {
    /// Sets the value, if there is one, at a time. Only the writer may call it.
    pub(crate) fn set(&self, value: Option<u64>, at: u64) {
        if let Some(value) = value {
            self.value.store(value, Relaxed);
            self.at.store(at.max(1), Relaxed);
        }
    }

    /// Returns the value, if one was ever set.
    pub(crate) fn get(&self) -> Option<u64> {
        (self.at.load(Relaxed) > 0).then(|| self.value.load(Relaxed))
    }
}

impl Merge for Last {
    fn merge(&self, other: &Self) {
        let at = other.at.load(Relaxed);
        if at > self.at.load(Relaxed) {
            self.set(other.get(), at);
        }
    }
}

/// A sequence lock over several cells: a reader sees a whole write or none. The writer never waits; a reader that
/// overlaps a write retries. The cells are atomics, so that a torn read only yields numbers that are discarded.
#[derive(Debug, Default)]
pub(crate) struct SeqLock(AtomicU64);

impl SeqLock {
    /// Runs `write`, which changes the cells. Only the writer may call it.
    pub(crate) fn write(&self, write: impl FnOnce()) {
        // The sequence is odd during a write. The fence keeps the stores to the cells after this one.
        let sequence = self.0.load(Relaxed);
        self.0.store(sequence.wrapping_add(1), Relaxed);
        fence(Release);
        write();
        self.0.store(sequence.wrapping_add(2), Release);
    }

    /// Returns the result of a `read` that overlapped no write, or `Err` with the last result if every attempt
    /// overlapped one, because the writer was suspended during a write.
    pub(crate) fn read<T>(&self, mut read: impl FnMut() -> T) -> Result<T, T> {
        for attempt in 0..MAX_ATTEMPTS {
            let before = self.0.load(Acquire);
            if before.is_multiple_of(2) {
                let found = read();
                // The fence keeps the loads of the cells before the next one.
                fence(Acquire);
                if self.0.load(Relaxed) == before {
                    return Ok(found);
                }
            }
            if attempt >= MAX_SPINS {
                thread::yield_now();
            }
        }
        Err(read())
    }
}

/// Maximum number of reads before the writer is considered suspended. A write takes 50 ns.
const MAX_ATTEMPTS: u32 = 50_000;

/// Reads before the reader yields its thread between two reads.
const MAX_SPINS: u32 = 100;

impl<T: Merge, const N: usize> Merge for [T; N] {
    fn merge(&self, other: &Self) {
        for (mine, theirs) in self.iter().zip(other) {
            mine.merge(theirs);
        }
    }
}

#[cfg(test)]
mod tests;
