//! The audit, on which the other tests rest, detects every fault.

use rusqlite::Connection;

use crate::life::Desk;

#[test]
fn audit_detects_missing_changed_and_wrongly_summed_rows() {
    for (change, wrong) in [
        ("DELETE FROM exchange WHERE seq = 7", "was acknowledged and is gone"),
        (
            "UPDATE exchange SET cost_pico = cost_pico + 1 WHERE rate IS NOT NULL AND seq < 20",
            "is not as it was",
        ),
        ("UPDATE exchange SET tenant = 'x' WHERE seq = 3", "is not as it was"),
        ("UPDATE line SET cost_low = cost_low + 1", "the line"),
        ("UPDATE line SET input = input - 1", "the line"),
        ("DELETE FROM line", "the line"),
    ] {
        let mut desk = Desk::new("audit");
        desk.live(&[], 100, 100);
        desk.audit();
        let file = Connection::open(desk.ledger()).unwrap();
        assert!(file.execute(change, []).unwrap() > 0, "{change} changes something");
        drop(file);
        let told = desk.try_audit().expect_err(change);
        assert!(told.contains(wrong), "{change}: {told}");
    }
}
