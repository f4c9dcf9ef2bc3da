//! The state of a running ledger, for metrics, readiness and `ledger status`.

use std::time::Duration;

use crate::error::Fault;

/// The state of a running ledger. Counters begin with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Acknowledged rows: those on the disk, after the fsync.
    pub rows_total: u64,
    /// Waiting rows, energies and idle shares.
    pub queued_rows: u64,
    /// Rows that are not stored, whose sums are in the overflow totals.
    pub shed_rows_total: u64,
    /// Rows of which neither the row nor its sums are stored.
    pub lost_rows_total: u64,
    /// True if the process ended with lost rows and could note them nowhere: perhaps no gap will cover them.
    pub is_loss_unnoted: bool,
    /// Energies and idle shares of which nothing is stored.
    pub lost_energies_total: u64,
    /// The wait of the oldest item; zero if none waits.
    pub commit_lag: Duration,
    /// True if the last attempt to write succeeded.
    pub up: bool,
    /// The current fault and its remedy.
    pub fault_message: Option<String>,
    /// The length of the open month's file, bytes.
    pub bytes: u64,
    /// The length of its write-ahead log, bytes.
    pub wal_bytes: u64,
    /// Gaps that were entered.
    pub gaps_total: u64,
    /// Damaged files that were quarantined.
    pub quarantined_total: u64,
    /// Faults by kind, in the order of [`Fault::ALL`].
    pub faults_total: [u64; Fault::ALL.len()],
    /// Commits.
    pub commits_total: u64,
    /// The total time of all commits.
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
    pub(crate) fn apply(self, status: &mut Status) {
        status.gaps_total += self.gaps;
        status.quarantined_total += self.quarantined;
        self.faults.into_iter().for_each(|fault| status.fault(fault));
    }
}
