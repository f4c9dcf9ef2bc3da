//! Exponential buckets against a naive computation.

use super::*;

/// Returns the bucket between whose ends the value lies, by trying all.
fn naive(unit: Unit, value: f64) -> Option<i32> {
    let first = first_octave(unit) * 8;
    let last = first + 32 * 8 - 1;
    let upper = |i: i32| (f64::from(i) / 8.0).exp2();
    if value <= upper(first) {
        return None;
    }
    Some((first + 1..last).find(|i| value <= upper(*i)).unwrap_or(last))
}

fn only(unit: Unit, value: f64) -> Option<i32> {
    let native = Native::default();
    native.observe(unit, value);
    let reading = native.read().reading(unit);
    assert_eq!(reading.buckets.iter().map(|(_, n)| n).sum::<u64>() + reading.zero_count, 1);
    reading.buckets.first().map(|(at, _)| *at)
}

#[test]
fn every_value_is_in_the_naive_bucket() {
    for unit in [Unit::Seconds, Unit::PerSecond, Unit::Tokens, Unit::Joules] {
        // A step of half a percent visits each of the 9 % wide buckets about eighteen times.
        let mut value = 1e-9;
        while value < 1e9 {
            assert_eq!(only(unit, value), naive(unit, value), "{value}");
            value *= 1.005;
        }
    }
}

#[test]
fn upper_end_belongs_to_its_bucket() {
    for power in -19..12 {
        let end = f64::from(power).exp2();
        assert_eq!(only(Unit::Seconds, end), Some(power * 8), "2^{power}");
        assert_eq!(only(Unit::Seconds, end.next_up()), Some(power * 8 + 1), "just over 2^{power}");
    }
    for (at, bound) in BOUNDS.iter().enumerate() {
        assert_eq!(only(Unit::Seconds, *bound), Some(at as i32 - 8));
        assert!((bound * 2.0 - (at as f64 / 8.0).exp2()).abs() < 1e-15);
    }
}

#[test]
fn values_beyond_range_are_in_outer_buckets() {
    for tiny in [0.0, f64::MIN_POSITIVE / 2.0, 1e-300, 9e-7, (-20.0f64).exp2()] {
        assert_eq!(only(Unit::Seconds, tiny), None, "{tiny}");
    }
    for huge in [4096.0, 1e9, f64::MAX] {
        assert_eq!(only(Unit::Seconds, huge), Some(11 * 8 + 7), "{huge}");
    }
    let reading = NativeCounts::default().reading(Unit::Seconds);
    assert_eq!((reading.zero_threshold, reading.schema), (1.0 / 1_048_576.0, 3));
}
