//! The samples of a ledger, of a central store and of usage events on the page.

use std::time::Duration;

use metrics::Part;

use super::{ledger, store, usage_events};
use crate::written_samples::written;

#[test]
fn each_number_of_ledger_has_sample() {
    let status = ledger::Status {
        up: true,
        rows_total: 1000,
        queued_rows: 3,
        commit_lag: Duration::from_millis(1500),
        shed_rows_total: 20,
        lost_rows_total: 5,
        lost_energies_total: 4,
        bytes: 4096,
        wal_bytes: 512,
        gaps_total: 2,
        quarantined_total: 1,
        faults_total: [6, 0, 0, 0, 0, 7],
        ..ledger::Status::default()
    };
    assert_eq!(
        written(Part::Ledger, move |to| ledger(&status, to)),
        [
            "tokenmeter_ledger_up{} 1",
            "tokenmeter_ledger_rows_total{} 1000",
            "tokenmeter_ledger_commit_lag_seconds{} 1.5",
            "tokenmeter_ledger_queued_rows{} 3",
            "tokenmeter_ledger_shed_rows_total{} 20",
            "tokenmeter_ledger_lost_rows_total{} 5",
            "tokenmeter_ledger_bytes{database} 4096",
            "tokenmeter_ledger_bytes{log} 512",
            "tokenmeter_ledger_gaps_total{} 2",
            "tokenmeter_ledger_quarantined_total{} 1",
            "tokenmeter_ledger_faults_total{full} 6",
            "tokenmeter_ledger_faults_total{read_only} 0",
            "tokenmeter_ledger_faults_total{io} 0",
            "tokenmeter_ledger_faults_total{corrupt} 0",
            "tokenmeter_ledger_faults_total{locked} 0",
            "tokenmeter_ledger_faults_total{other} 7",
            "tokenmeter_dropped_total{ledger_row} 25",
            "tokenmeter_dropped_total{ledger_energy} 4",
        ]
    );
}

#[test]
fn each_number_of_store_has_sample() {
    let status = ship::Status {
        up: false,
        rows_total: 900,
        pending_rows: 100,
        lag: Duration::from_secs(7),
        failures: [4, 0, 1],
        ..ship::Status::default()
    };
    assert_eq!(
        written(Part::Store, move |to| store(&status, to)),
        [
            "tokenmeter_ship_up{} 0",
            "tokenmeter_ship_rows_total{} 900",
            "tokenmeter_ship_pending_rows{} 100",
            "tokenmeter_ship_lag_seconds{} 7",
            "tokenmeter_ship_failures_total{unreachable} 4",
            "tokenmeter_ship_failures_total{refused} 0",
            "tokenmeter_ship_failures_total{other} 1",
        ]
    );
}

#[test]
fn each_count_of_usage_events_has_a_sample() {
    let status = events::Status {
        up: true,
        sent_total: 900,
        pending: 100,
        rejected_total: 2,
        deleted_total: 3,
        failures: [4, 0, 1, 5],
        ..events::Status::default()
    };
    assert_eq!(
        written(Part::Events, move |to| usage_events(&status, to)),
        [
            "tokenmeter_usage_events_up{} 1",
            "tokenmeter_usage_events_sent_total{} 900",
            "tokenmeter_usage_events_pending{} 100",
            "tokenmeter_usage_events_failures_total{unreachable} 4",
            "tokenmeter_usage_events_failures_total{busy} 0",
            "tokenmeter_usage_events_failures_total{refused} 1",
            "tokenmeter_usage_events_failures_total{local} 5",
            "tokenmeter_dropped_total{usage_event} 5",
        ]
    );
}
