//! Observations in exponential buckets, as Prometheus' native histograms have them: eight to an
//! octave ([`SCHEMA`]), so that each bucket is 9 % wider than the one below. The law: the range is
//! fixed, so that memory is bounded. What lies below is in the zero bucket, what lies above in the
//! last one; an octave without observations has no cells.

use crate::cell::Count;
use crate::lazy::Lazy;
use crate::reading::NativeReading;
use crate::table::Unit;

/// A worker's exponential buckets.
#[derive(Debug, Default)]
pub(crate) struct Native {
    zero: Count,
    /// From the first of the unit's [`range`] on.
    octaves: [Lazy<[Count; SLOTS]>; OCTAVES],
}

impl Native {
    /// One observation: finite, and not negative.
    pub(crate) fn observe(&self, unit: Unit, value: f64) {
        let Some(at) = place(unit, value) else { return self.zero.add(1) };
        self.octaves[at / SLOTS].make()[at % SLOTS].add(1);
    }

    pub(crate) fn read(&self) -> NativeCounts {
        let octaves = self.octaves.iter().enumerate();
        let met = octaves.filter_map(|(at, octave)| Some((at, octave.get()?.each_ref().map(Count::get))));
        NativeCounts { zero: self.zero.get(), octaves: met.collect() }
    }

    pub(crate) fn add(&self, counts: &NativeCounts) {
        self.zero.add(counts.zero);
        for (at, octave) in &counts.octaves {
            let cells = self.octaves[*at].make();
            cells.iter().zip(octave).for_each(|(cell, n)| cell.add(*n));
        }
    }
}

/// Exponential buckets as they were at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct NativeCounts {
    zero: u64,
    /// Those that were met, by their place in the range.
    octaves: Vec<(usize, [u64; SLOTS])>,
}

impl NativeCounts {
    /// How many observations.
    pub(crate) fn count(&self) -> u64 {
        self.octaves.iter().flat_map(|(_, octave)| octave).fold(self.zero, |sum, n| sum.saturating_add(*n))
    }

    /// For whoever exports it.
    pub(crate) fn reading(&self, unit: Unit) -> NativeReading {
        let octaves = self.octaves.iter().flat_map(|(octave, slots)| {
            let first = (range(unit) + *octave as i32) * SLOTS as i32;
            slots.iter().enumerate().map(move |(slot, n)| (first + slot as i32, *n))
        });
        NativeReading {
            schema: SCHEMA,
            zero_count: self.zero,
            zero_threshold: f64::from(range(unit)).exp2(),
            buckets: octaves.filter(|(_, n)| *n > 0).collect(),
        }
    }
}

/// Where a value lies, counted from the start of the range; `None` in the zero bucket.
fn place(unit: Unit, value: f64) -> Option<usize> {
    let from = range(unit) * SLOTS as i32;
    let at = number(value).checked_sub(from).filter(|at| *at > 0)?;
    Some((at as usize).min(OCTAVES * SLOTS - 1))
}

/// The number of a value's bucket, as Prometheus counts them: bucket `i` ends at 2^(i/8).
fn number(value: f64) -> i32 {
    // The value is a fraction from 0.5 up to 1 times a power of two; read off its bits.
    let bits = value.to_bits();
    let power = (bits >> FRACTION_BITS & 0x7ff) as i32 - 1022;
    let fraction = f64::from_bits(bits & ((1 << FRACTION_BITS) - 1) | 1022 << FRACTION_BITS);
    let within = BOUNDS.partition_point(|bound| *bound < fraction);
    (power - 1) * SLOTS as i32 + within as i32
}

/// The octave at which a unit's range begins. Seconds: from a microsecond to an hour. Rates, tokens
/// and joules: from half a thousandth to two millions.
fn range(unit: Unit) -> i32 {
    if unit == Unit::Seconds { -20 } else { -11 }
}

/// Two to the power of 3 buckets to an octave.
const SCHEMA: i8 = 3;

const SLOTS: usize = 1 << SCHEMA;

const OCTAVES: usize = 32;

const FRACTION_BITS: u32 = 52;

/// Upper ends of an octave's buckets as parts of its own end, from the end of the octave below:
/// 2^(i/8) / 2, the very numbers that Prometheus has.
const BOUNDS: [f64; SLOTS] = [
    0.5,
    0.5452538663326288,
    0.5946035575013605,
    0.6484197773255048,
    0.7071067811865475,
    0.7711054127039704,
    0.8408964152537144,
    0.9170040432046711,
];

#[cfg(test)]
mod tests;
