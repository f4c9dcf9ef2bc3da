//! The closed lists of label values that only other crates write.

/// Label values of `error_type`.
pub const GPU_ERRORS: [&str; 2] = ["corrected", "uncorrected"];

/// Label values of `unit`.
pub const GPU_UNITS: [&str; 6] = ["graphics", "sm", "tensor", "dram", "encoder", "decoder"];

/// Label values of `clock`.
pub const GPU_CLOCKS: [&str; 3] = ["graphics", "sm", "memory"];

/// Label values of `reason` of `tokenmeter_gpu_throttled_seconds_total`.
pub const GPU_THROTTLES: [&str; 7] =
    ["power_cap", "hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal", "sync_boost", "other"];

/// Label value of `what` of `tokenmeter_dropped_total` for a sample that failed or was rejected.
pub const GPU_SAMPLE: &str = "gpu_sample";

/// Label value of `what` of `tokenmeter_dropped_total` for an exchange settled without its share of the accelerators'
/// energy and time, because its notice came too late or the queue was full.
pub const GPU_SHARE: &str = "gpu_share";

/// Label values of `signal`.
pub const SIGNALS: [&str; 3] = ["metric", "span", "log"];

/// Label values of `outcome`.
pub const OUTCOMES: [&str; 6] =
    ["made", "sent", "dropped_full", "dropped_refused", "dropped_unreachable", "dropped_shutdown"];

/// Label values of `what` of `tokenmeter_dropped_total` for each signal's dropped items.
pub const DROPPED_SIGNALS: [&str; SIGNALS.len()] = ["metric_export", "span", "log_record"];

/// Label values of `file` of `tokenmeter_ledger_bytes`.
pub const LEDGER_FILES: [&str; 2] = ["database", "log"];

/// Label values of `fault`.
pub const LEDGER_FAULTS: [&str; 6] = ["full", "read_only", "io", "corrupt", "locked", "other"];

/// The `what` of `tokenmeter_dropped_total` for shed and lost rows.
pub const LEDGER_ROW: &str = "ledger_row";

/// The `what` of `tokenmeter_dropped_total` for dropped energies and idle shares.
pub const LEDGER_ENERGY: &str = "ledger_energy";

/// Label values of `reason` of `tokenmeter_ship_failures_total`.
pub const SHIP_FAILURES: [&str; 3] = ["unreachable", "refused", "other"];

/// Label values of `reason` of `tokenmeter_usage_events_failures_total`.
pub const EVENTS_FAILURES: [&str; 4] = ["unreachable", "busy", "refused", "local"];

/// The `what` of `tokenmeter_dropped_total` for usage events that the receiver rejected one by one, or whose rows
/// retention deleted before they were sent.
pub const USAGE_EVENT: &str = "usage_event";

/// Label value of `what` of `tokenmeter_dropped_total` for an evicted connection to the admin address.
pub const ADMIN_CONNECTION: &str = "admin_connection";

/// Label value of `what` of `tokenmeter_dropped_total` for a connection to the admin address that failed its TLS
/// handshake.
pub const ADMIN_HANDSHAKE: &str = "admin_handshake";
