//! Reports of months whose files are gone.

use std::sync::Arc;
use std::time::Duration;

use ledger::source::{Month, Range};
use ledger::testing::{NOON_US, Place, row};
use ledger::{Plan, Row, Store, close, month, start};

use crate::tests::query;
use crate::{Query, make};

fn october() -> Month {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + 1_000_000
}

fn enter(place: &Place, now_us: i64, rows: impl IntoIterator<Item = Row>) {
    let ledger = start(Plan { clock: Arc::new(move || now_us), ..Plan::new(place.ledger()) });
    rows.into_iter().for_each(|row| ledger.enter(row));
    assert!(ledger.shutdown(Duration::from_secs(30)), "{:?}", ledger.status());
}

/// A ledger with a hundred rows in October, written in October.
fn with_october() -> Place {
    let place = Place::new();
    enter(&place, NOON_US, (0..100).map(row));
    place
}

/// Returns the note of a report about the absent file of October; empty if the file exists or is outside the query.
#[test]
fn report_notes_an_absent_month() {
    let place = with_october();
    enter(&place, november_us(), [Row { ended_us: november_us(), ..row(1_000) }]);
    let november = Range { since_us: november_us(), until_us: i64::MAX };
    let october_alone = Range { since_us: i64::MIN, until_us: november_us() };
    let said = |range: Range, billed: Option<Month>| {
        let store = Store::open_read(&place.ledger()).unwrap();
        let asked = Query { range, billed, ..query(&[]) };
        let said = make(&store, &asked).unwrap().notes.sentences(&range);
        said.into_iter().filter(|said| said.contains("is gone")).collect::<Vec<_>>()
    };
    close(&place.ledger(), october(), "tester", november_us()).unwrap();
    assert_eq!(said(Range::ALL, None), [""; 0]);
    std::fs::remove_file(place.path("x-2026-10.db")).unwrap();
    for (range, billed) in [(Range::ALL, None), (october_alone, None), (Range::ALL, Some(october()))] {
        let said = said(range, billed);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("the file of 2026-10 is gone (it was signed off): its contents"),
            "{said:?}"
        );
        assert!(said[0].contains("x-2026-10.db back from a copy"), "{said:?}");
    }
    let last_us = month::begin_us(october() + 1) - 1;
    assert_eq!(said(Range { since_us: last_us, ..november }, None).len(), 1, "the month's last microsecond");
    for since_us in [last_us + 1, november_us()] {
        let range = Range { since_us, ..november };
        assert_eq!(said(range, None), [""; 0], "the query excludes the month");
    }
    assert_eq!(said(Range::ALL, Some(october() + 1)), [""; 0]);
}

/// The chain of closed months, and rows that a later month may have of an earlier one.
#[test]
fn absent_month_is_known_from_later_ones() {
    let place = with_october();
    enter(&place, november_us(), [Row { ended_us: november_us(), ..row(1_000) }]);
    let december = month::begin_us(october() + 2);
    close(&place.ledger(), october(), "tester", december).unwrap();
    close(&place.ledger(), october() + 1, "tester", december).unwrap();
    let said = |range: Range| {
        let store = Store::open_read(&place.ledger()).unwrap();
        make(&store, &Query { range, ..query(&[]) }).unwrap().notes.sentences(&range).join("; ")
    };
    for name in ["x-2026-10.db", "x-2026-10.json"] {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    assert!(said(Range::ALL).contains("2026-10 is gone (a later month was begun after it)"));
    // Its file was elsewhere when November's was made.
    let november = rusqlite::Connection::open(place.path("x-2026-11.db")).unwrap();
    assert_eq!(november.execute("DELETE FROM fact WHERE name = 'before'", []).unwrap(), 1);
    november.close().unwrap();
    let all = said(Range::ALL);
    assert!(
        all.contains("the file of 2026-10 is gone (2026-11 was closed after it, or after one before it)"),
        "{all}"
    );
    std::fs::remove_file(place.path("x-2026-11.db")).unwrap();
    let before = said(Range { since_us: 0, until_us: 1 });
    assert!(
        before.contains("the file of 2026-11 is gone (it was signed off): its late exchanges"),
        "{before}"
    );
}
