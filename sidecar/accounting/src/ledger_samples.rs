//! Samples of the ledger, of its shipping and of its usage events. The invariant: each row is in exactly one of
//! committed, shed and lost.

use ledger::{Fault, Ledger};
use metrics::{LEDGER_ENERGY, LEDGER_FILES, LEDGER_ROW, Metric, SampleWriter, Samples, USAGE_EVENT};
use ship::{Reason, StatusReader};

/// The ledger's numbers.
pub(crate) struct LedgerSamples(pub(crate) Ledger);

impl Samples for LedgerSamples {
    fn write(&self, to: &mut SampleWriter) {
        ledger(&self.0.status(), to);
    }
}

/// The numbers of a ledger that was shut down.
pub(crate) struct EndedLedgerSamples(pub(crate) Ledger);

impl Samples for EndedLedgerSamples {
    fn write(&self, to: &mut SampleWriter) {
        counts(&self.0.status(), to);
    }
}

/// The numbers of the shipping to a central store.
pub(crate) struct StoreSamples(pub(crate) StatusReader);

impl Samples for StoreSamples {
    fn write(&self, to: &mut SampleWriter) {
        store(&self.0.status(), to);
    }
}

/// The numbers of usage events.
pub(crate) struct EventsSamples(pub(crate) events::StatusReader);

impl Samples for EventsSamples {
    fn write(&self, to: &mut SampleWriter) {
        usage_events(&self.0.status(), to);
    }
}

fn ledger(status: &ledger::Status, to: &mut SampleWriter) {
    to.count(Metric::LedgerUp, &[], u64::from(status.up));
    counts(status, to);
}

fn counts(status: &ledger::Status, to: &mut SampleWriter) {
    to.count(Metric::LedgerRows, &[], status.rows_total);
    to.number(Metric::LedgerLag, &[], status.commit_lag.as_secs_f64());
    to.count(Metric::LedgerQueued, &[], status.queued_rows);
    to.count(Metric::LedgerShed, &[], status.shed_rows_total);
    to.count(Metric::LedgerLost, &[], status.lost_rows_total);
    for (file, bytes) in LEDGER_FILES.into_iter().zip([status.bytes, status.wal_bytes]) {
        to.count(Metric::LedgerBytes, &[file], bytes);
    }
    to.count(Metric::LedgerGaps, &[], status.gaps_total);
    to.count(Metric::LedgerQuarantined, &[], status.quarantined_total);
    for (fault, n) in Fault::ALL.into_iter().zip(status.faults_total) {
        to.count(Metric::LedgerFaults, &[fault.name()], n);
    }
    let lost_rows = status.shed_rows_total.saturating_add(status.lost_rows_total);
    to.count(Metric::Dropped, &[LEDGER_ROW], lost_rows);
    to.count(Metric::Dropped, &[LEDGER_ENERGY], status.lost_energies_total);
}

fn store(status: &ship::Status, to: &mut SampleWriter) {
    to.count(Metric::ShipUp, &[], u64::from(status.up));
    to.count(Metric::ShipRows, &[], status.rows_total);
    to.count(Metric::ShipPending, &[], status.pending_rows);
    to.number(Metric::ShipLag, &[], status.lag.as_secs_f64());
    for (reason, n) in Reason::ALL.into_iter().zip(status.failures) {
        to.count(Metric::ShipFailures, &[reason.name()], n);
    }
}

fn usage_events(status: &events::Status, to: &mut SampleWriter) {
    to.count(Metric::EventsUp, &[], u64::from(status.up));
    to.count(Metric::EventsSent, &[], status.sent_total);
    to.count(Metric::EventsPending, &[], status.pending);
    for (reason, n) in events::Reason::ALL.into_iter().zip(status.failures) {
        to.count(Metric::EventsFailures, &[reason.name()], n);
    }
    to.count(Metric::Dropped, &[USAGE_EVENT], status.rejected_total + status.deleted_total);
}

#[cfg(test)]
#[path = "ledger_samples_tests.rs"]
mod tests;
