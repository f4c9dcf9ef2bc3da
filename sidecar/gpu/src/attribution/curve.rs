//! A cumulative function, known at knots and straight between them, in bounded memory.
//!
//! The law: it never falls, and reading it down at an end and up at a beginning gives no two
//! spans that meet more than they have together.

use std::collections::VecDeque;

use super::wide::{mul_div, mul_div_up};

/// N quantities over one coordinate.
#[derive(Clone, Debug)]
pub(crate) struct Curve<const N: usize> {
    knots: VecDeque<Knot<N>>,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Knot<const N: usize> {
    x: u128,
    y: [u128; N],
}

impl<const N: usize> Curve<N> {
    /// Begins with nothing at `x`; keeps `most` knots, at least four.
    pub(crate) fn new(x: u128, most: usize) -> Self {
        Self { knots: VecDeque::from([Knot { x, y: [0; N] }]), most: most.max(4) }
    }

    /// Goes on to `x`, growing by `by`. Where `x` does not grow, nothing can be told apart later,
    /// and `by` is 0.
    pub(crate) fn grow(&mut self, x: u128, by: [u128; N]) {
        let last = self.back();
        if x <= last.x {
            return;
        }
        self.knots.push_back(Knot { x, y: std::array::from_fn(|i| last.y[i] + by[i]) });
        if self.knots.len() > self.most {
            self.thin();
        }
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> u128 {
        self.back().x
    }

    /// `x`, brought to where the curve is.
    pub(crate) fn within(&self, x: u128) -> u128 {
        x.clamp(self.knots[0].x, self.end())
    }

    /// What lies between two coordinates, not more than that.
    pub(crate) fn between(&self, from: u128, to: u128) -> [u128; N] {
        let (begin, end) = (self.at(from, mul_div_up), self.at(to, mul_div));
        std::array::from_fn(|i| end[i].saturating_sub(begin[i]))
    }

    fn at(&self, x: u128, part: fn(u128, u128, u128) -> u128) -> [u128; N] {
        let after = self.knots.partition_point(|knot| knot.x <= x);
        let Some(right) = self.knots.get(after) else { return self.back().y };
        let Some(left) = after.checked_sub(1).map(|before| self.knots[before]) else { return right.y };
        let (inside, width) = (x - left.x, right.x - left.x);
        std::array::from_fn(|i| left.y[i] + part(right.y[i] - left.y[i], inside, width))
    }

    fn back(&self) -> Knot<N> {
        *self.knots.back().expect("a curve begins with a knot and keeps its last")
    }

    /// Drops every second knot of the older half. What began there is then known to begin in twice
    /// as wide an interval.
    fn thin(&mut self) {
        let half = self.most / 2;
        let mut number = 0;
        self.knots.retain(|_| {
            let keep = number % 2 == 0 || number > half;
            number += 1;
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_straight_between_knots_and_flat_outside() {
        let mut curve = Curve::new(100, 4096);
        curve.grow(110, [5]);
        curve.grow(110, [0]);
        curve.grow(120, [50]);
        for (from, to, expected) in [
            (0, 100, 0),
            (100, 120, 55),
            (0, 999, 55),
            (110, 112, 10),
            (105, 115, 27),
            (101, 102, 0),
            (118, 120, 10),
        ] {
            assert_eq!(curve.between(from, to), [expected], "{from} to {to}");
        }
        assert_eq!((curve.within(7), curve.within(115), curve.within(121)), (100, 115, 120));
    }

    #[test]
    fn spans_that_meet_have_together_no_more_than_the_whole() {
        let mut curve = Curve::new(0, 4096);
        curve.grow(7, [3]);
        curve.grow(20, [1000]);
        let parts: u128 = (0..20).map(|x| curve.between(x, x + 1)[0]).sum();
        assert!(parts <= 1003 && parts + 40 > 1003, "{parts}");
    }

    #[test]
    fn thinned_it_keeps_its_ends_and_its_recent_half() {
        let (mut thin, mut full) = (Curve::new(0, 64), Curve::new(0, 100_000));
        for x in 1..=1000u128 {
            thin.grow(x * 10, [x % 7 * 100]);
            full.grow(x * 10, [x % 7 * 100]);
        }
        assert!(thin.knots.len() <= 64);
        assert_eq!(thin.between(0, 10_000), full.between(0, 10_000));
        assert_eq!(thin.between(9_755, 10_000), full.between(9_755, 10_000));
        let (a, b) = (thin.between(5_005, 10_000)[0], full.between(5_005, 10_000)[0]);
        assert!(a.abs_diff(b) < 5_000, "{a} for {b}: wrong by less than one merged interval");
    }
}
