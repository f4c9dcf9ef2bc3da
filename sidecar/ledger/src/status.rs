//! The state of a running ledger, for metrics, readiness and `ledger status`.

use std::time::Duration;

use crate::error::Fault;

/// The state of a running ledger. Counters begin with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Rows acknowledged: on the disk, after its fsync.
    pub rows_total: u64,
    /// Rows, energies and idle shares that wait.
    pub queued_rows: u64,
    /// Rows whose detail was given up; their totals are kept.
    pub shed_rows_total: u64,
    /// Rows of which nothing is kept.
    pub lost_rows_total: u64,
    /// Energies and idle shares of which nothing is kept.
    pub lost_energies_total: u64,
    /// The wait of the oldest item; zero if none waits.
    pub commit_lag: Duration,
    /// True if the last attempt to write succeeded.
    pub up: bool,
    /// The problem and its remedy, if there is one.
    pub trouble: Option<String>,
    /// Length of the open month's file, bytes.
    pub bytes: u64,
    /// Length of its write-ahead log, bytes.
    pub wal_bytes: u64,
    /// Gaps that were written down.
    pub gaps_total: u64,
    /// Files that were quarantined because they were damaged.
    pub quarantined_total: u64,
    /// Faults by kind, in the order of [`Fault::ALL`].
    pub faults_total: [u64; Fault::ALL.len()],
    /// Commits.
    pub commits_total: u64,
    /// The time that they took together.
    pub commit_time: Duration,
}

impl Status {
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.faults_total[fault as usize] += 1;
    }
}

/// Events that are not in the status yet.
#[derive(Debug, Default)]
pub(crate) struct StatusUpdate {
    pub gaps: u64,
    pub quarantined: u64,
    pub faults: Vec<Fault>,
}

impl StatusUpdate {
    pub(crate) fn tell(self, status: &mut Status) {
        status.gaps_total += self.gaps;
        status.quarantined_total += self.quarantined;
        self.faults.into_iter().for_each(|fault| status.fault(fault));
    }
}
