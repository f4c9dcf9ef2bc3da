//! The smallest things a worker writes. The law: one writer, any number of readers, so an addition
//! is a relaxed load and a relaxed store and never a locked instruction. Cells are added to each
//! other to sum the workers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
        self.set(self.get() + other.get());
    }
}

impl<T: Absorb, const N: usize> Absorb for [T; N] {
    fn absorb(&self, other: &Self) {
        for (mine, theirs) in self.iter().zip(other) {
            mine.absorb(theirs);
        }
    }
}
