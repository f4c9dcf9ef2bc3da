//! How shipping goes, for metrics, readiness, and for whoever wants to delete what was shipped.

use std::path::PathBuf;
use std::time::Duration;

use ledger::feed::{Cursor, Origin};

use crate::error::Reason;

/// How shipping goes. All counts are since the start.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Exchanges the store has confirmed.
    pub rows_total: u64,
    /// Exchanges that wait, as of the last look at the ledger.
    pub pending_rows: u64,
    /// How long ago the first of them ended.
    pub lag: Duration,
    /// Whether the last attempt went well and nothing hangs.
    pub up: bool,
    /// Failed attempts, in the order of [`Reason::ALL`].
    pub failures: [u64; Reason::ALL.len()],
    /// What is wrong now and what to do.
    pub error: Option<String>,
    /// Each file that was looked at.
    pub files: Vec<FileStatus>,
}

/// How far one file has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its name at the last look.
    pub path: PathBuf,
    /// Which it is.
    pub origin: Origin,
    /// What the store has confirmed of it: nothing above may be deleted.
    pub shipped: Cursor,
    /// Whether that was all of it at the last look.
    pub complete: bool,
}
