//! Retention of the store: rows of past months are deleted, their totals stay.

use super::ledgers::{TestLedger, arrives};
use super::rows::{batch, origin, rows};
use super::server::shared;
use crate::send::send;
use crate::{Address, Central, forget, schema};

fn address(database: &str) -> Address {
    Address::parse(&shared().url(database)).unwrap()
}

/// The rows of each month of the store.
fn rows_by_month(database: &str) -> Vec<(i32, u64, bool)> {
    let verdicts = Central::open(&address(database)).unwrap().verify(None).unwrap();
    assert!(verdicts.iter().all(|month| month.differences.is_empty()), "{verdicts:#?}");
    verdicts.iter().map(|month| (month.month, month.rows, month.is_forgotten)).collect()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn rows_of_past_months_are_deleted_once() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(500);
    let shipper = book.ship(&url, 64);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(std::time::Duration::from_secs(30)));
    let mut owner = shared().client(&database).unwrap();
    let totals = "SELECT sum(exchanges)::text, sum(cost_pico)::text FROM tokenmeter.line";
    let mut summed = || {
        let row = owner.query_one(totals, &[]).unwrap();
        (row.get::<_, String>(0), row.get::<_, String>(1))
    };
    let (before, sums) = (rows_by_month(&database), summed());
    assert!(
        before.len() >= 3 && before.iter().all(|(_, rows, forgotten)| *rows > 0 && !forgotten),
        "{before:?}"
    );

    // Kept for longer than any month of the test's rows is old.
    assert!(forget(&address(&database), 100_000).unwrap().is_empty());
    assert_eq!(rows_by_month(&database), before);

    let past: Vec<i32> = before[..before.len() - 1].iter().map(|(month, ..)| *month).collect();
    let deleted = forget(&address(&database), 0).unwrap();
    // A month that has not ended by the store's clock keeps its rows.
    assert!(!deleted.is_empty() && past.starts_with(&deleted), "{deleted:?} of {past:?}");
    let after = rows_by_month(&database);
    for (was, is) in before.iter().zip(&after) {
        let expected = if deleted.contains(&was.0) { (was.0, 0, true) } else { *was };
        assert_eq!(*is, expected);
    }
    assert_eq!(summed(), sums);
    assert!(forget(&address(&database), 0).unwrap().is_empty());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn only_the_owner_deletes() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(rows(0..10))).unwrap();
    owner.batch_execute("SELECT tokenmeter.ensure_months(ARRAY[20000, 30000])").unwrap();
    owner
        .batch_execute(
            "CREATE ROLE forgets_nothing LOGIN PASSWORD 'a'; GRANT USAGE ON SCHEMA tokenmeter TO forgets_nothing; \
             GRANT SELECT ON tokenmeter.version TO forgets_nothing",
        )
        .unwrap();
    let url = shared().url_of("forgets_nothing", "a", &database);
    let error = forget(&Address::parse(&format!("{url}?sslmode=disable")).unwrap(), 0).unwrap_err();
    let remedy = "only owner, the owner of the schema tokenmeter, may; name that role in the URL";
    assert!(error.message.contains(remedy), "{error}");
    assert!(rows_by_month(&database).iter().all(|(.., forgotten)| !forgotten));
}
