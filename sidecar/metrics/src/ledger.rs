//! The readings of the ledger and of its shipping to the central store. Invariant: each row is in exactly one of
//! committed, shed and lost.

use std::time::Duration;

/// The current state of the ledger; counts are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerReading {
    /// True if it is writable.
    pub up: bool,
    /// Rows committed to the disk.
    pub rows: u64,
    /// Queued rows, energies and idle shares.
    pub queued_rows: u64,
    /// Age of the oldest row that is not on the disk; zero if there is none.
    pub commit_lag: Duration,
    /// Rows dropped because the queue was full, with their totals kept.
    pub shed_rows: u64,
    /// Rows dropped together with their totals.
    pub lost_rows: u64,
    /// Dropped energies of exchanges and idle shares of devices.
    pub lost_energies: u64,
    /// Bytes of the current month's file and of its log, in the order of [`LEDGER_FILES`].
    pub bytes: [Option<u64>; LEDGER_FILES.len()],
    /// Gap markers written.
    pub gaps: u64,
    /// Corrupt files that were quarantined.
    pub quarantined: u64,
    /// Failed writes, in the order of [`LEDGER_FAULTS`].
    pub faults: [u64; LEDGER_FAULTS.len()],
}

/// Label values of `file` of `tokenmeter_ledger_bytes`.
pub const LEDGER_FILES: [&str; 2] = ["database", "log"];

/// Label values of `fault`.
pub const LEDGER_FAULTS: [&str; 6] = ["full", "read_only", "io", "corrupt", "locked", "other"];

/// The `what` of `tokenmeter_dropped_total` for shed and lost rows.
pub const LEDGER_ROW: &str = "ledger_row";

/// The `what` of `tokenmeter_dropped_total` for dropped energies and idle shares.
pub const LEDGER_ENERGY: &str = "ledger_energy";

/// The current state of shipping to the central store; counts are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShipReading {
    /// True if the store accepted the last rows; `None` before the first attempt.
    pub up: Option<bool>,
    /// Rows that the store has confirmed.
    pub rows: u64,
    /// Rows that the store has not confirmed.
    pub pending_rows: u64,
    /// Age of the oldest of those; zero if there is none.
    pub lag: Duration,
    /// Failed attempts, in the order of [`SHIP_FAILURES`].
    pub failures: [u64; SHIP_FAILURES.len()],
}

/// Label values of `reason` of `tokenmeter_ship_failures_total`.
pub const SHIP_FAILURES: [&str; 3] = ["unreachable", "refused", "other"];
