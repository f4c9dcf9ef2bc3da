//! Counts of items by outcome. Invariant: made = sent + dropped + queued at every moment, so that all of them change
//! under one lock, and a reader sees one moment.

use std::time::Duration;

use meter::edges::DURATION_S;
use metrics::HistogramReading;

use crate::plan::Signal;

/// The counts of all signals, each at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Data points of metrics.
    pub metrics: SignalCounts,
    /// Spans.
    pub spans: SignalCounts,
    /// Log records.
    pub logs: SignalCounts,
    /// True for each exported signal, in the order of [`Signal::ALL`].
    pub(crate) on: [bool; 3],
}

impl Counts {
    /// Returns the counts of one signal; `None` if it is not exported.
    pub fn of(&self, signal: Signal) -> Option<&SignalCounts> {
        let counts = match signal {
            Signal::Metric => &self.metrics,
            Signal::Span => &self.spans,
            Signal::Log => &self.logs,
        };
        self.on[signal as usize].then_some(counts)
    }
}

/// The counts of one signal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignalCounts {
    /// Items made.
    pub made: u64,
    /// Items that the collector accepted.
    pub sent: u64,
    /// Items dropped because the queue was full.
    pub dropped_full: u64,
    /// Items that the collector rejected, by a status without retry or by a partial rejection.
    pub dropped_refused: u64,
    /// Items dropped because no attempt succeeded in time.
    pub dropped_unreachable: u64,
    /// Items still queued at shutdown, and those submitted after it.
    pub dropped_shutdown: u64,
    /// Items queued or in flight.
    pub queued: u64,
    /// True if the last export succeeded; `None` before the first one ended.
    pub up: Option<bool>,
    /// Durations of exports, all attempts and waits included.
    pub durations: Durations,
}

impl SignalCounts {
    /// Returns all dropped items.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_refused + self.dropped_unreachable + self.dropped_shutdown
    }

    /// Adds the result of an export.
    pub(crate) fn settle(&mut self, items: u64, end: End, took: Duration) {
        self.queued -= items;
        self.up = Some(matches!(end, End::Accepted { .. }));
        match end {
            End::Accepted { rejected } => {
                let rejected = rejected.min(items);
                self.dropped_refused += rejected;
                self.sent += items - rejected;
            }
            End::Refused => self.dropped_refused += items,
            End::Unreachable => self.dropped_unreachable += items,
        }
        self.durations.observe(took);
    }
}

/// The result of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The collector accepted the request.
    Accepted {
        /// Items of a partial rejection.
        rejected: u64,
    },
    /// The collector rejected the request.
    Refused,
    /// No attempt succeeded before the deadline.
    Unreachable,
}

/// A histogram with the edges of [`DURATION_S`], the last bucket open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Observations per bucket, not cumulative.
    pub buckets: [u64; DURATION_S.len() + 1],
    /// Sum of all observations, nanoseconds.
    pub sum_ns: u64,
}

impl Durations {
    /// Returns the histogram as a reading of the metrics.
    pub fn reading(&self) -> HistogramReading {
        let edges = DURATION_S.into_iter().chain([f64::INFINITY]);
        let buckets = edges.zip(self.buckets).collect();
        HistogramReading { sum: self.sum_ns as f64 / 1e9, buckets, ..HistogramReading::default() }
    }

    fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = DURATION_S.iter().position(|&edge| seconds <= edge).unwrap_or(DURATION_S.len());
        self.buckets[bucket] += 1;
        self.sum_ns = self.sum_ns.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}
