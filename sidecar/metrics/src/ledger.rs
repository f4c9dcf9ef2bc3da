//! What the control plane says of the ledger and of its way to the central store. The law: what is
//! acknowledged, shed and lost are three numbers, and a row is in one of them.

use std::time::Duration;

/// The ledger as of now; counts are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerReading {
    /// Whether it can be written.
    pub up: bool,
    /// Rows that are on the disk.
    pub rows: u64,
    /// Rows that wait, and what waits beside them.
    pub queued_rows: u64,
    /// Age of the oldest row that is not on the disk; zero if there is none.
    pub commit_lag: Duration,
    /// Rows of which only totals are kept.
    pub shed_rows: u64,
    /// Rows of which nothing is kept.
    pub lost_rows: u64,
    /// Exchanges' energies and devices' idle shares of which nothing is kept.
    pub lost_energies: u64,
    /// Bytes of the open month's file and of its log, in the order of [`LEDGER_FILES`].
    pub bytes: [Option<u64>; LEDGER_FILES.len()],
    /// Gap markers written.
    pub gaps: u64,
    /// Files set aside as corrupt.
    pub quarantined: u64,
    /// Failed writes, in the order of [`LEDGER_FAULTS`].
    pub faults: [u64; LEDGER_FAULTS.len()],
}

/// Label values of `file` of `tokenmeter_ledger_bytes`.
pub const LEDGER_FILES: [&str; 2] = ["database", "log"];

/// Label values of `fault`.
pub const LEDGER_FAULTS: [&str; 6] = ["full", "read_only", "io", "corrupt", "locked", "other"];

/// The `what` of `tokenmeter_dropped_total` for rows that the ledger does not have, shed or lost.
pub const LEDGER_ROW: &str = "ledger_row";

/// The `what` of `tokenmeter_dropped_total` for energies and idle shares that the ledger does not have.
pub const LEDGER_ENERGY: &str = "ledger_energy";

/// The way to the central store as of now; counts are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShipReading {
    /// Whether it took the last rows; `None` before the first try.
    pub up: Option<bool>,
    /// Rows it has confirmed.
    pub rows: u64,
    /// Rows it has not.
    pub pending_rows: u64,
    /// Age of the oldest of those; zero if there is none.
    pub lag: Duration,
    /// Failed tries, in the order of [`SHIP_FAILURES`].
    pub failures: [u64; SHIP_FAILURES.len()],
}

/// Label values of `reason` of `tokenmeter_ship_failures_total`.
pub const SHIP_FAILURES: [&str; 3] = ["unreachable", "refused", "other"];
