//! The status of shipping, for metrics, readiness and the retention of shipped rows.

use std::path::PathBuf;
use std::time::Duration;

use ledger::export::{Cursor, Origin};

use crate::error::Reason;

/// The status of shipping. All counts are since the start.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Exchanges that the store has confirmed.
    pub rows_total: u64,
    /// Exchanges not yet sent, as of the last poll of the ledger.
    pub pending_rows: u64,
    /// Time since the oldest of them ended.
    pub lag: Duration,
    /// True if the last attempt succeeded and none hangs.
    pub up: bool,
    /// Failed attempts, in the order of [`Reason::ALL`].
    pub failures: [u64; Reason::ALL.len()],
    /// The current error and its remedy.
    pub error: Option<String>,
    /// The files of the last poll.
    pub files: Vec<FileStatus>,
}

/// The progress of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its path at the last poll.
    pub path: PathBuf,
    /// Its identity.
    pub origin: Origin,
    /// The cursor that the store has confirmed; rows beyond it must not be deleted.
    pub shipped: Cursor,
    /// True if that was the whole file at the last poll.
    pub complete: bool,
}
