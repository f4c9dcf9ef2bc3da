//! A cumulative function, known at knots and straight between them, in bounded memory.
//!
//! The law: it never falls, and a span is never given more than it has: its beginning is rounded up
//! and its end down, to the next knot where those between were dropped.

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
    /// Knots before it were dropped: since the one before, it is not known to be straight.
    merged: bool,
}

impl<const N: usize> Curve<N> {
    /// Begins with nothing at `x`; keeps `most` knots, at least four.
    pub(crate) fn new(x: u128, most: usize) -> Self {
        Self { knots: VecDeque::from([Knot { x, y: [0; N], merged: false }]), most: most.max(4) }
    }

    /// Goes on to `x`, growing by `by`. Where `x` does not grow, nothing can be told apart later,
    /// and `by` is 0.
    pub(crate) fn grow(&mut self, x: u128, by: [u128; N]) {
        let last = self.back();
        if x <= last.x {
            return;
        }
        let y = std::array::from_fn(|i| last.y[i] + by[i]);
        self.knots.push_back(Knot { x, y, merged: false });
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
        let (begin, end) = (self.at(from, true), self.at(to, false));
        std::array::from_fn(|i| end[i].saturating_sub(begin[i]))
    }

    /// Whether a quantity may have grown anywhere between two coordinates.
    pub(crate) fn grew(&self, from: u128, to: u128, quantity: usize) -> bool {
        from < to && self.at(to, true)[quantity] > self.at(from, false)[quantity]
    }

    fn at(&self, x: u128, up: bool) -> [u128; N] {
        let after = self.knots.partition_point(|knot| knot.x <= x);
        let Some(right) = self.knots.get(after) else { return self.back().y };
        let Some(left) = after.checked_sub(1).map(|before| self.knots[before]) else { return right.y };
        let (inside, width) = (x - left.x, right.x - left.x);
        match (inside, right.merged, up) {
            (0, ..) | (_, true, false) => left.y,
            (_, true, true) => right.y,
            (_, false, true) => {
                std::array::from_fn(|i| left.y[i] + mul_div_up(right.y[i] - left.y[i], inside, width))
            }
            (_, false, false) => {
                std::array::from_fn(|i| left.y[i] + mul_div(right.y[i] - left.y[i], inside, width))
            }
        }
    }

    fn back(&self) -> Knot<N> {
        *self.knots.back().expect("a curve begins with a knot and keeps its last")
    }

    /// Drops knots where they are close for their age: what began between two that are kept is at
    /// least [`FINENESS`] times as old as they are apart.
    fn thin(&mut self) {
        let end = self.end();
        let mut kept: VecDeque<Knot<N>> = VecDeque::with_capacity(self.most + 1);
        let mut dropped = false;
        let mut knots = self.knots.iter().copied().peekable();
        while let Some(mut knot) = knots.next() {
            let close = kept.back().zip(knots.peek()).is_some_and(|(before, after)| {
                (after.x - before.x).saturating_mul(FINENESS) <= end - after.x
            });
            if !close {
                knot.merged |= dropped;
                kept.push_back(knot);
            }
            dropped = close;
        }
        self.knots = kept;
        if self.knots.len() > self.most - self.most / 8 {
            self.halve();
        }
    }

    /// Drops every second knot of the older half, whatever that costs: it is months old.
    fn halve(&mut self) {
        let half = self.most / 2;
        let (mut number, mut dropped) = (0, false);
        self.knots.retain_mut(|knot| {
            let keep = number % 2 == 0 || number > half;
            number += 1;
            knot.merged |= keep && dropped;
            dropped = !keep;
            keep
        });
    }
}

/// What began between two knots is this many times as old as they are apart, at least. A month of
/// busy seconds takes 2,600 knots.
const FINENESS: u128 = 256;

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
    fn thinned_it_keeps_its_ends_and_is_never_over() {
        let (mut thin, mut full) = (Curve::new(0, 4096), Curve::new(0, 1_000_000));
        for x in 1..=50_000u128 {
            thin.grow(x * 10, [x % 7 * 100]);
            full.grow(x * 10, [x % 7 * 100]);
        }
        assert!(thin.knots.len() <= 4096);
        assert_eq!(thin.between(0, 500_000), full.between(0, 500_000));
        for from in (0..500_000).step_by(7) {
            let (a, b) = (thin.between(from, 500_000)[0], full.between(from, 500_000)[0]);
            // The mean is 30 in each unit of x, and a burst is 7 knots.
            let merged =
                if 500_000 - from < 10 * FINENESS { 0 } else { (500_000 - from) * 30 / FINENESS + 2100 };
            assert!(a <= b && b - a <= merged, "from {from}: {a} for {b}");
        }
    }

    #[test]
    fn where_it_grew_is_known_and_where_it_may_have() {
        let mut curve = Curve::new(0, 4096);
        curve.grow(10, [0, 10]);
        curve.grow(20, [10, 0]);
        for (from, to, expected) in [
            (0, 10, [false, true]),
            (10, 20, [true, false]),
            (9, 11, [true; 2]),
            (11, 11, [false; 2]),
            (20, 30, [false; 2]),
        ] {
            assert_eq!([0, 1].map(|i| curve.grew(from, to, i)), expected, "{from} to {to}");
        }
        // Long after, it is no longer known where between two knots; and it is not forgotten.
        for x in 21..50_000 {
            curve.grow(x, [0, 1]);
        }
        assert!(curve.grew(19, 50_000, 0) && !curve.grew(1_000, 50_000, 0));
    }

    #[test]
    fn it_is_bounded_whatever_comes() {
        let mut curve = Curve::new(0, 64);
        for x in 1..=10_000u128 {
            curve.grow(x * x * x, [1]);
            assert!(curve.knots.len() <= 64);
        }
        assert_eq!(curve.between(0, 1_000_000_000_000), [10_000]);
    }
}
