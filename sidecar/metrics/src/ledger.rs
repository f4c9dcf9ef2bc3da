//! The label values of the ledger's metrics and of its shipping to the central store.

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
