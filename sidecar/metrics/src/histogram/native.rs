//! Exponential buckets of Prometheus' native histograms: eight per octave ([`SCHEMA`]), so that each bucket is 9 %
//! wider than the one below. Invariant: the range is fixed, so that memory is bounded. Values below it are in the zero
//! bucket, values above it in the last one. An octave without observations has no cells.

use crate::cell::Count;
use crate::lazy::Lazy;
use crate::reading::NativeReading;
use crate::table::Unit;

/// A worker's exponential buckets.
#[derive(Debug, Default)]
pub(crate) struct Native {
    zero: Count,
    /// The octaves from the unit's [`first_octave`] on.
    octaves: [Lazy<[Count; SLOTS]>; OCTAVES],
}

impl Native {
    /// Adds an observation, which must be finite and not negative.
    pub(crate) fn observe(&self, unit: Unit, value: f64) {
        let Some(at) = position(unit, value) else { return self.zero.add(1) };
        self.octaves[at / SLOTS].make()[at % SLOTS].add(1);
    }

    pub(crate) fn read(&self) -> NativeCounts {
        let octaves = self.octaves.iter().enumerate();
        let used = octaves.filter_map(|(at, octave)| Some((at, octave.get()?.each_ref().map(Count::get))));
        NativeCounts { zero: self.zero.get(), octaves: used.collect() }
    }

    pub(crate) fn add(&self, counts: &NativeCounts) {
        self.zero.add(counts.zero);
        for (at, octave) in &counts.octaves {
            let cells = self.octaves[*at].make();
            cells.iter().zip(octave).for_each(|(cell, n)| cell.add(*n));
        }
    }
}

/// Exponential buckets at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct NativeCounts {
    zero: u64,
    /// The octaves with observations, by their position in the range.
    octaves: Vec<(usize, [u64; SLOTS])>,
}

impl NativeCounts {
    /// Returns the number of observations.
    pub(crate) fn count(&self) -> u64 {
        self.octaves.iter().flat_map(|(_, octave)| octave).fold(self.zero, |sum, n| sum.saturating_add(*n))
    }

    /// Returns them in the form for exports.
    pub(crate) fn reading(&self, unit: Unit) -> NativeReading {
        let octaves = self.octaves.iter().flat_map(|(octave, slots)| {
            let first = (first_octave(unit) + *octave as i32) * SLOTS as i32;
            slots.iter().enumerate().map(move |(slot, n)| (first + slot as i32, *n))
        });
        NativeReading {
            schema: SCHEMA,
            zero_count: self.zero,
            zero_threshold: f64::from(first_octave(unit)).exp2(),
            buckets: octaves.filter(|(_, n)| *n > 0).collect(),
        }
    }
}

/// Returns the position of a value's bucket from the start of the range; `None` for the zero bucket.
fn position(unit: Unit, value: f64) -> Option<usize> {
    let from = first_octave(unit) * SLOTS as i32;
    let at = bucket_number(value).checked_sub(from).filter(|at| *at > 0)?;
    Some((at as usize).min(OCTAVES * SLOTS - 1))
}

/// Returns the number of a value's bucket by Prometheus' numbering: bucket `i` ends at 2^(i/8).
fn bucket_number(value: f64) -> i32 {
    // The bits of the value are a fraction from 0.5 up to 1, and a power of two.
    let bits = value.to_bits();
    let power = (bits >> FRACTION_BITS & 0x7ff) as i32 - 1022;
    let fraction = f64::from_bits(bits & ((1 << FRACTION_BITS) - 1) | 1022 << FRACTION_BITS);
    let within = BOUNDS.partition_point(|bound| *bound < fraction);
    (power - 1) * SLOTS as i32 + within as i32
}

/// Returns the octave at which a unit's range begins. Seconds: from a microsecond to an hour. Rates, tokens and
/// joules: from half a thousandth to two millions.
fn first_octave(unit: Unit) -> i32 {
    if unit == Unit::Seconds { -20 } else { -11 }
}

/// Base-2 logarithm of the buckets per octave.
const SCHEMA: i8 = 3;

const SLOTS: usize = 1 << SCHEMA;

const OCTAVES: usize = 32;

const FRACTION_BITS: u32 = 52;

/// Lower ends of an octave's buckets as fractions of the octave's upper end: 2^(i/8) / 2, the constants of
/// Prometheus.
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
