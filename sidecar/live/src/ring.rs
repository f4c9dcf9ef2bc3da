//! The last points of a scope, in bounded memory.

use std::collections::VecDeque;

use crate::history::{History, Step};
use crate::point::Point;

/// The values of a point; NaN is a value that is not known.
pub(crate) type Values = [f32; Point::MEMBERS.len()];

/// The last points of one step.
#[derive(Debug)]
pub(crate) struct Ring {
    step: Step,
    points: VecDeque<Values>,
}

/// The last points of both steps.
#[derive(Debug)]
pub(crate) struct Rings {
    pub(crate) seconds: Ring,
    pub(crate) minutes: Ring,
}

impl Default for Rings {
    fn default() -> Self {
        Self { seconds: Ring::new(Step::Second), minutes: Ring::new(Step::Minute) }
    }
}

impl Rings {
    /// Returns the ring of a step.
    pub(crate) fn of(&self, step: Step) -> &Ring {
        match step {
            Step::Second => &self.seconds,
            Step::Minute => &self.minutes,
        }
    }
}

impl Ring {
    fn new(step: Step) -> Self {
        Self { step, points: VecDeque::new() }
    }

    /// Adds a point; the oldest gives way.
    pub(crate) fn push(&mut self, point: &Point) {
        if self.points.len() == self.step.points() {
            self.points.pop_front();
        } else if self.points.len() == self.points.capacity() {
            // Exactly, because growth by doubling would need up to twice the memory.
            self.points.reserve_exact(GROWTH_POINTS.min(self.step.points() - self.points.len()));
        }
        self.points.push_back(point.values().map(|value| value.map_or(f32::NAN, |value| value as f32)));
    }

    /// Returns the points as the history of a scope.
    pub(crate) fn history(&self, scope: &str, last_unix_s: u64) -> History {
        let series = Point::MEMBERS.iter().enumerate().map(|(at, member)| {
            let values = self.points.iter().map(|point| Some(point[at]).filter(|value| !value.is_nan()));
            ((*member).to_owned(), values.collect())
        });
        History {
            scope: scope.to_owned(),
            step_seconds: self.step.seconds(),
            last_unix_s,
            series: series.collect(),
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<Values>()
    }
}

/// Points by which a ring grows.
const GROWTH_POINTS: usize = 60;
