//! The label values of telemetry about telemetry.

/// Label values of `signal`.
pub const SIGNALS: [&str; 3] = ["metric", "span", "log"];

/// Label values of `outcome`.
pub const OUTCOMES: [&str; 6] =
    ["made", "sent", "dropped_full", "dropped_refused", "dropped_unreachable", "dropped_shutdown"];

/// Label values of `what` of `tokenmeter_dropped_total` for each signal's dropped items.
pub const DROPPED_SIGNALS: [&str; SIGNALS.len()] = ["metric_export", "span", "log_record"];
