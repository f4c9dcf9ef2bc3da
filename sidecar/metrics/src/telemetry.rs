//! Telemetry about telemetry: the outcomes of the items for a collector. Invariant: for spans and logs, made = sent +
//! dropped + queued, exactly.

use crate::reading::HistogramReading;

/// The state of the exporter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TelemetryReading {
    /// In the order of [`SIGNALS`]; `None` where the signal is not exported.
    pub signals: [Option<SignalReading>; SIGNALS.len()],
}

/// The items of one signal: data points of exports, spans or log records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignalReading {
    /// Items made.
    pub made: u64,
    /// Items that the collector accepted.
    pub sent: u64,
    /// Items dropped because the queue was full.
    pub dropped_full: u64,
    /// Items that the collector rejected.
    pub dropped_refused: u64,
    /// Items dropped because the collector was unreachable.
    pub dropped_unreachable: u64,
    /// Items dropped at the end of the process.
    pub dropped_shutdown: u64,
    /// Queued items.
    pub queued: u64,
    /// True if the collector accepted the last export; `None` before the first.
    pub up: Option<bool>,
    /// Durations of exports in seconds, in the buckets of the table.
    pub export_seconds: HistogramReading,
}

impl SignalReading {
    /// Returns the items by outcome, in the order of [`OUTCOMES`].
    pub(crate) fn outcomes(&self) -> [u64; OUTCOMES.len()] {
        [
            self.made,
            self.sent,
            self.dropped_full,
            self.dropped_refused,
            self.dropped_unreachable,
            self.dropped_shutdown,
        ]
    }

    pub(crate) fn dropped(&self) -> u64 {
        let [_, _, dropped @ ..] = self.outcomes();
        dropped.into_iter().fold(0, u64::saturating_add)
    }
}

/// Label values of `signal`.
pub const SIGNALS: [&str; 3] = ["metric", "span", "log"];

/// Label values of `outcome`.
pub const OUTCOMES: [&str; 6] =
    ["made", "sent", "dropped_full", "dropped_refused", "dropped_unreachable", "dropped_shutdown"];

/// Label values of `what` of `tokenmeter_dropped_total` for each signal's dropped items.
pub const DROPPED_SIGNALS: [&str; SIGNALS.len()] = ["metric_export", "span", "log_record"];
