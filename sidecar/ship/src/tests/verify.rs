//! A store that is verified: what was shipped is right, and what was changed since is named.

use super::ledgers::{TestLedger, arrives};
use super::resend::reprice;
use super::server::shared;
use crate::{Address, Central, Verdict};

fn verified(database: &str) -> Vec<Verdict> {
    Central::open(&Address::parse(&shared().url(database)).unwrap()).unwrap().verify(None).unwrap()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn verify_finds_a_changed_row() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(500);
    assert!(reprice(&book, 9) > 300);
    let shipper = book.ship(&url, 64);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(std::time::Duration::from_secs(30)));
    let right = verified(&database);
    assert_eq!(right.iter().map(|month| month.rows).sum::<u64>(), 500);
    assert!(right.len() >= 3 && right.iter().all(|month| month.differences.is_empty()), "{right:#?}");

    let is_right =
        |database: &str| verified(database).iter().map(|month| month.differences.len()).collect::<Vec<_>>();
    for (change, back) in [
        ("UPDATE tokenmeter.line SET cost_pico = cost_pico + 1 WHERE day = '2026-10-16'", "- 1"),
        (
            "UPDATE tokenmeter.line SET gpu_ns = gpu_ns + 1 WHERE day = '2026-10-16' AND class = 'usage'",
            "- 1",
        ),
    ] {
        owner.batch_execute(change).unwrap();
        let differences = is_right(&database);
        assert!(differences[2] > 0 && differences[..2] == [0, 0], "{differences:?}");
        owner.batch_execute(&change.replace("+ 1", back)).unwrap();
    }
    owner
        .batch_execute(
            "DELETE FROM tokenmeter.exchange WHERE id IN (SELECT id FROM tokenmeter.exchange \
                         WHERE ended_at > '2026-10-01' AND role IS NULL ORDER BY id LIMIT 1)",
        )
        .unwrap();
    let differences = &verified(&database)[2].differences;
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert!(
        differences[0].contains("the daily total of class usage of 2026-10-")
            && differences[0].contains("its rows sum to"),
        "{differences:?}"
    );

    // Rows that were dropped are not compared; corrections are.
    owner.batch_execute("SELECT tokenmeter.forget('2026-09')").unwrap();
    let september = &verified(&database)[1];
    assert!(
        september.is_forgotten && september.rows == 0 && september.differences.is_empty(),
        "{september:?}"
    );
    owner.batch_execute("DELETE FROM tokenmeter.correction WHERE ended_at < '2026-10-01'").unwrap();
    assert!(verified(&database)[1].differences.iter().all(|text| text.contains("of class correction")));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn unknown_month_is_an_error() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    crate::schema::ensure(&mut owner).unwrap();
    let central = Central::open(&Address::parse(&shared().url(&database)).unwrap()).unwrap();
    let error = central.verify(Some(681)).unwrap_err();
    assert!(error.to_string().contains("no data of 2026-10"), "{error}");
}
