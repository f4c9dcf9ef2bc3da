//! What became of every item. The law: made = sent + dropped + queued at every moment, so all of
//! them change together under one lock, and a look at them sees one moment.

use std::time::Duration;

use meter::edges::DURATION_S;
use metrics::HistogramReading;

use crate::plan::Signal;

/// What became of the items of all signals, at one moment each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Data points of metrics.
    pub metrics: SignalCounts,
    /// Spans.
    pub spans: SignalCounts,
    /// Log records.
    pub logs: SignalCounts,
    /// Which of them are sent at all, in the order of [`Signal::ALL`].
    pub(crate) on: [bool; 3],
}

impl Counts {
    /// Those of one signal; `None` where it is not sent.
    pub fn of(&self, signal: Signal) -> Option<&SignalCounts> {
        let counts = match signal {
            Signal::Metric => &self.metrics,
            Signal::Span => &self.spans,
            Signal::Log => &self.logs,
        };
        self.on[signal as usize].then_some(counts)
    }
}

/// What became of the items of one signal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignalCounts {
    /// Items there were.
    pub made: u64,
    /// Items the collector took.
    pub sent: u64,
    /// Items that found the queue full.
    pub dropped_full: u64,
    /// Items the collector would not have: a status that is not to be tried again, or a partial
    /// rejection.
    pub dropped_refused: u64,
    /// Items given up because no attempt succeeded in time.
    pub dropped_unreachable: u64,
    /// Items left over when we ended, and those that came after.
    pub dropped_shutdown: u64,
    /// Items that wait or are on their way.
    pub queued: u64,
    /// Whether the last export succeeded; `None` before the first ended.
    pub up: Option<bool>,
    /// How long exports took, all attempts and waits included.
    pub durations: Durations,
}

impl SignalCounts {
    /// All that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_refused + self.dropped_unreachable + self.dropped_shutdown
    }

    /// Books what an export came to.
    pub(crate) fn settle(&mut self, items: u64, end: End, took: Duration) {
        self.queued -= items;
        self.up = Some(matches!(end, End::Taken { .. }));
        match end {
            End::Taken { rejected } => {
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

/// How an export ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The collector took it, but for so many.
    Taken {
        /// Items it says it rejected.
        rejected: u64,
    },
    /// It said no.
    Refused,
    /// It did not answer, or asked to come again, until the time was up.
    Unreachable,
}

/// A histogram with the edges of [`DURATION_S`], the last bucket open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Observations per bucket, not cumulated.
    pub buckets: [u64; DURATION_S.len() + 1],
    /// Sum of all observations, nanoseconds.
    pub sum_ns: u64,
}

impl Durations {
    /// As the metrics have it.
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
