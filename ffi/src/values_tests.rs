//! Numbers are never reused, and every value is listed.

use std::collections::HashSet;

use super::{Number, RateKind, TextKind};

fn check(numbers: impl Iterator<Item = u32>, names: impl Iterator<Item = &'static str>, len: usize) {
    assert!(numbers.eq(0..u32::try_from(len).unwrap()), "a value at the end, with the next number");
    assert_eq!(names.collect::<HashSet<_>>().len(), len);
}

#[test]
fn values_are_numbered_in_order_and_named_once() {
    check(Number::ALL.iter().map(|v| *v as u32), Number::ALL.iter().map(|v| v.name()), Number::ALL.len());
    check(
        RateKind::ALL.iter().map(|v| *v as u32),
        RateKind::ALL.iter().map(|v| v.name()),
        RateKind::ALL.len(),
    );
    check(
        TextKind::ALL.iter().map(|v| *v as u32),
        TextKind::ALL.iter().map(|v| v.name()),
        TextKind::ALL.len(),
    );
}
