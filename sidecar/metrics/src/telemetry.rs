//! Telemetry about telemetry: what became of everything that was made for a collector. The law:
//! made is sent, dropped and queued, exactly, for spans and logs.

use crate::reading::HistogramReading;

/// What the exporter did so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TelemetryReading {
    /// In the order of [`SIGNALS`]; `None` where the signal is not exported.
    pub signals: [Option<SignalReading>; SIGNALS.len()],
}

/// What became of one signal's items: data points of exports, spans or log records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SignalReading {
    /// Items made.
    pub made: u64,
    /// Items a collector took.
    pub sent: u64,
    /// Items there was no room for.
    pub dropped_full: u64,
    /// Items the collector refused.
    pub dropped_refused: u64,
    /// Items that found no collector.
    pub dropped_unreachable: u64,
    /// Items that were left when the process ended.
    pub dropped_shutdown: u64,
    /// Items that wait.
    pub queued: u64,
    /// Whether the last export was taken; `None` before the first.
    pub up: Option<bool>,
    /// How long exports took, in seconds and in the buckets of the table.
    pub export_seconds: HistogramReading,
}

impl SignalReading {
    /// Items by what became of them, in the order of [`OUTCOMES`].
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
