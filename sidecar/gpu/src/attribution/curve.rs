//! A cumulative function, known at points and linear between them, in bounded memory.
//!
//! The law: it never falls, and no span is given more than it has: its beginning is rounded up
//! and its end down, to the next kept point if points between were dropped.

use std::collections::VecDeque;

use super::wide::{mul_div, mul_div_up};

/// N cumulative quantities over one coordinate.
#[derive(Clone, Debug)]
pub(crate) struct Curve<const N: usize> {
    points: VecDeque<Point<N>>,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Point<const N: usize> {
    x: u128,
    y: [u128; N],
    /// Points before it were dropped: the curve is not known to be linear since the previous one.
    merged: bool,
}

impl<const N: usize> Curve<N> {
    /// Returns a curve of zeros at `x`, which keeps at most `most` points, and at least four.
    pub(crate) fn new(x: u128, most: usize) -> Self {
        Self { points: VecDeque::from([Point { x, y: [0; N], merged: false }]), most: most.max(4) }
    }

    /// Extends the curve to `x`, growing by `by`. If `x` does not grow, `by` must be 0: an equal
    /// coordinate cannot be distinguished later.
    pub(crate) fn grow(&mut self, x: u128, by: [u128; N]) {
        let last = self.back();
        if x <= last.x {
            return;
        }
        let y = std::array::from_fn(|i| last.y[i] + by[i]);
        self.points.push_back(Point { x, y, merged: false });
        if self.points.len() > self.most {
            self.thin();
        }
    }

    /// Returns its last coordinate.
    pub(crate) fn end(&self) -> u128 {
        self.back().x
    }

    /// Clamps `x` to the curve's range.
    pub(crate) fn within(&self, x: u128) -> u128 {
        x.clamp(self.points[0].x, self.end())
    }

    /// Returns the growth between two coordinates, never more than the true one.
    pub(crate) fn between(&self, from: u128, to: u128) -> [u128; N] {
        let (begin, end) = (self.at(from, true), self.at(to, false));
        std::array::from_fn(|i| end[i].saturating_sub(begin[i]))
    }

    /// Returns true if a quantity may have grown anywhere between two coordinates.
    pub(crate) fn grew(&self, from: u128, to: u128, quantity: usize) -> bool {
        from < to && self.at(to, true)[quantity] > self.at(from, false)[quantity]
    }

    fn at(&self, x: u128, up: bool) -> [u128; N] {
        let after = self.points.partition_point(|point| point.x <= x);
        let Some(right) = self.points.get(after) else { return self.back().y };
        let Some(left) = after.checked_sub(1).map(|before| self.points[before]) else { return right.y };
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

    fn back(&self) -> Point<N> {
        *self.points.back().expect("a curve starts with a point and keeps its last")
    }

    /// Drops points that are close for their age: a span between two kept points is at least
    /// [`MIN_AGE_RATIO`] times as old as it is long.
    fn thin(&mut self) {
        let end = self.end();
        let mut kept: VecDeque<Point<N>> = VecDeque::with_capacity(self.most + 1);
        let mut dropped = false;
        let mut points = self.points.iter().copied().peekable();
        while let Some(mut point) = points.next() {
            let close = kept.back().zip(points.peek()).is_some_and(|(before, after)| {
                (after.x - before.x).saturating_mul(MIN_AGE_RATIO) <= end - after.x
            });
            if !close {
                point.merged |= dropped;
                kept.push_back(point);
            }
            dropped = close;
        }
        self.points = kept;
        if self.points.len() > self.most - self.most / 8 {
            self.halve();
        }
    }

    /// Drops every second point of the older half, without regard to precision: it is months old.
    fn halve(&mut self) {
        let half = self.most / 2;
        let (mut number, mut dropped) = (0, false);
        self.points.retain_mut(|point| {
            let keep = number % 2 == 0 || number > half;
            number += 1;
            point.merged |= keep && dropped;
            dropped = !keep;
            keep
        });
    }
}

/// The least ratio of the age of a span between two points to its length. A month of
/// busy seconds takes 2,600 points.
const MIN_AGE_RATIO: u128 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_is_linear_between_points_and_flat_outside() {
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
    fn adjacent_spans_never_exceed_the_whole() {
        let mut curve = Curve::new(0, 4096);
        curve.grow(7, [3]);
        curve.grow(20, [1000]);
        let parts: u128 = (0..20).map(|x| curve.between(x, x + 1)[0]).sum();
        assert!(parts <= 1003 && parts + 40 > 1003, "{parts}");
    }

    #[test]
    fn thinned_curve_keeps_ends_and_never_overestimates() {
        let (mut thin, mut full) = (Curve::new(0, 4096), Curve::new(0, 1_000_000));
        for x in 1..=50_000u128 {
            thin.grow(x * 10, [x % 7 * 100]);
            full.grow(x * 10, [x % 7 * 100]);
        }
        assert!(thin.points.len() <= 4096);
        assert_eq!(thin.between(0, 500_000), full.between(0, 500_000));
        for from in (0..500_000).step_by(7) {
            let (a, b) = (thin.between(from, 500_000)[0], full.between(from, 500_000)[0]);
            // The mean is 30 per unit of x, and a burst is 7 points.
            let merged = if 500_000 - from < 10 * MIN_AGE_RATIO {
                0
            } else {
                (500_000 - from) * 30 / MIN_AGE_RATIO + 2100
            };
            assert!(a <= b && b - a <= merged, "from {from}: {a} for {b}");
        }
    }

    #[test]
    fn growth_is_reported_even_after_thinning() {
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
        // Much later the position between two points is no longer known; the growth is not forgotten.
        for x in 21..50_000 {
            curve.grow(x, [0, 1]);
        }
        assert!(curve.grew(19, 50_000, 0) && !curve.grew(1_000, 50_000, 0));
    }

    #[test]
    fn curve_stays_within_its_point_limit() {
        let mut curve = Curve::new(0, 64);
        for x in 1..=10_000u128 {
            curve.grow(x * x * x, [1]);
            assert!(curve.points.len() <= 64);
        }
        assert_eq!(curve.between(0, 1_000_000_000_000), [10_000]);
    }
}
