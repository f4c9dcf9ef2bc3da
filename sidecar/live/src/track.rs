//! The past of one scope: what its next point is computed from, and its last points.

use std::collections::VecDeque;

use metrics::units;

use crate::counts::{Counts, Times};
use crate::point::Point;
use crate::recent::{Recent, RecentGrowth};
use crate::ring::Rings;

/// The past of one scope.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// The counts of the last sample.
    pub(crate) last: Counts,
    /// The last second.
    pub(crate) point: Point,
    /// The last 10 and 60 seconds.
    pub(crate) recent: Recent,
    /// The history, if the scope has one.
    pub(crate) rings: Option<Rings>,
    /// Output tokens and exchanges of the last minutes; each minute has half the weight of the next.
    pub(crate) activity: f64,
    /// The times of the last points, oldest first; `None` for a second that was missed, and for tenants.
    window: VecDeque<Option<Times>>,
    growth: RecentGrowth,
    minute: Minute,
}

/// The values of a scope at one moment that do not grow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    /// `None` for tenants.
    pub(crate) in_flight: Option<u64>,
    /// `None` but for all traffic.
    pub(crate) watts: Option<f64>,
    /// True if there is a price book.
    pub(crate) has_prices: bool,
}

/// The time between two samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The number of the last second of the sample before.
    pub(crate) before: u64,
    /// The number of the last second, above `before`.
    pub(crate) second: u64,
    /// Its measured length.
    pub(crate) seconds: f64,
}

/// The points of the minute so far.
#[derive(Debug, Default)]
struct Minute {
    /// By member, in the order of [`Point::MEMBERS`]: the sum of the known values, and their number.
    sums: [(f64, u32); Point::MEMBERS.len()],
    times: Times,
    /// Output tokens and exchanges.
    activity: u64,
}

impl Track {
    /// Returns the past of a scope that begins with these counts.
    pub(crate) fn from(counts: Counts) -> Self {
        Self { last: counts, ..Self::default() }
    }

    /// Adds a sample. The seconds between two samples that are further apart have the mean of their time; what
    /// belongs to a moment is not known in them. The sum over a history is the growth of the counts, but for the rounding
    /// of that time to whole seconds.
    pub(crate) fn sample(&mut self, span: Span, counts: Counts, gauges: Gauges) {
        let growth = counts.since(&self.last);
        self.last = counts;
        let per_second = |n: u64| Some(n as f64 / span.seconds);
        let missed = Point {
            output_tokens_per_second: per_second(growth.output_tokens),
            input_tokens_per_second: per_second(growth.input_tokens),
            exchanges_per_second: per_second(growth.exchanges),
            errors_per_second: per_second(growth.errors),
            aborts_per_second: per_second(growth.aborts),
            spend_per_hour: gauges
                .has_prices
                .then(|| units(growth.spend_pico) * SECONDS_PER_HOUR / span.seconds),
            ..Point::default()
        };
        let first = span.before + 1;
        (first..span.second).take(WINDOW_POINTS).for_each(|_| self.pass(None));
        // The times and the activity belong to the minute of the last second.
        (first.max(span.second.saturating_sub(LONGEST_PAUSE))..span.second)
            .for_each(|second| self.push(second, missed));
        self.minute.activity =
            self.minute.activity.saturating_add(growth.output_tokens).saturating_add(growth.exchanges);
        self.recent = self.growth.add(span, &growth, gauges.has_prices);
        growth.times.iter().for_each(|times| self.minute.times.add(times));
        self.pass(growth.times);
        self.point = Point {
            in_flight: gauges.in_flight.map(|n| n as f64),
            watts: gauges.watts,
            ..quantiles(missed, self.window.iter().flatten())
        };
        self.push(span.second, self.point);
    }

    fn pass(&mut self, times: Option<Times>) {
        if self.window.len() == WINDOW_POINTS {
            self.window.pop_front();
        }
        self.window.push_back(times);
    }

    fn push(&mut self, second: u64, point: Point) {
        for (sum, value) in self.minute.sums.iter_mut().zip(point.values()) {
            if let Some(value) = value {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
        if let Some(rings) = &mut self.rings {
            rings.seconds.push(&point);
        }
        if second.is_multiple_of(SECONDS_PER_MINUTE) {
            let minute = std::mem::take(&mut self.minute);
            self.activity = self.activity / 2.0 + minute.activity as f64;
            if let Some(rings) = &mut self.rings {
                rings.minutes.push(&minute.point());
            }
        }
    }
}

impl Minute {
    fn point(self) -> Point {
        let mean = Point::of(self.sums.map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))));
        quantiles(mean, [&self.times])
    }
}

/// Returns a point with the quantiles of these times.
fn quantiles<'a>(point: Point, times: impl IntoIterator<Item = &'a Times>) -> Point {
    let mut all = Times::default();
    times.into_iter().for_each(|times| all.add(times));
    Point {
        first_token_p50_seconds: all.first_token.quantile(0.5),
        first_token_p99_seconds: all.first_token.quantile(0.99),
        request_tokens_per_second_p50: all.output_rate.quantile(0.5),
        ..point
    }
}

/// Points of a quantile's window.
pub(crate) const WINDOW_POINTS: usize = 10;

/// Seconds between two samples beyond which all points are older than a history: a day.
const LONGEST_PAUSE: u64 = 86_400;

pub(crate) const SECONDS_PER_MINUTE: u64 = 60;
pub(crate) const SECONDS_PER_HOUR: f64 = 3600.0;
