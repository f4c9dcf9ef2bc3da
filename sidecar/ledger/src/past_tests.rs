//! Rows of a month that is over, where its file is damaged, held, closed or of another time: they are
//! entered once, where they belong, and the open month goes on.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::file::File;
use crate::running::Ledger;
use crate::source::{DAY_US, Month, Range, Source};
use crate::testing::{NOON_US, Place, row};
use crate::{Fault, Plan, Row, Store, month, start, verify};

const LONG: Duration = Duration::from_secs(30);

fn october() -> Month {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + 1_000_000
}

fn at(us: i64, place: &Place) -> (Ledger, Arc<AtomicI64>) {
    let hands = Arc::new(AtomicI64::new(us));
    let clock = Arc::clone(&hands);
    let clock: crate::Clock = Arc::new(move || clock.load(Ordering::SeqCst));
    (start(Plan { clock, who: "test".into(), ..Plan::new(place.ledger()) }), hands)
}

#[track_caller]
fn until(what: &str, ledger: &Ledger, holds: impl Fn(&crate::Status) -> bool) {
    let end = Instant::now() + LONG;
    while !holds(&ledger.status()) {
        assert!(Instant::now() < end, "it never came that {what}: {:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Exchanges by the month whose file has them.
fn billed(place: &Place) -> Vec<(String, u64)> {
    let mut months = std::collections::BTreeMap::<Month, u64>::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |month, line| {
            *months.entry(month).or_default() += line.sums.exchanges;
            Ok(())
        })
        .unwrap();
    months.into_iter().map(|(month, count)| (month::name(month), count)).collect()
}

#[track_caller]
fn well(place: &Place) {
    for verdict in verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, [], "{}", verdict.path.display());
    }
}

fn expected(months: &[(&str, u64)]) -> Vec<(String, u64)> {
    months.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

fn new(n: u64) -> Row {
    Row { ended_us: november_us(), ..row(n) }
}

#[test]
fn late_rows_of_damaged_month_get_new_file() {
    let place = Place::new();
    fs::write(place.path("x-2026-10.db"), b"these are notes, and nothing else\n".repeat(300)).unwrap();
    let (ledger, _) = at(november_us(), &place);
    [new(1), row(2)].into_iter().for_each(|row| ledger.enter(row));
    until("both are there", &ledger, |status| status.rows_total == 2 && status.up);
    let status = ledger.status();
    assert_eq!((status.quarantined_total, status.gaps_total), (1, 1));
    assert!(ledger.shutdown(LONG));
    assert_eq!(billed(&place), expected(&[("2026-10", 1), ("2026-11", 1)]));
    assert!(place.names().contains(&"x-2026-10.db.corrupt-2026-11-01T00-00-01Z".to_owned()));
    well(&place);
}

/// An empty month does not replace one that was signed off.
#[test]
fn damaged_closed_month_is_not_quarantined() {
    let place = Place::new();
    let (ledger, _) = at(NOON_US, &place);
    ledger.enter(row(1));
    assert!(ledger.shutdown(LONG));
    crate::close(&place.ledger(), october(), "ann", november_us() + DAY_US).unwrap();
    let october = place.path("x-2026-10.db");
    fs::remove_file(&october).unwrap();
    let damaged = vec![0xa5; 8_192];
    fs::write(&october, &damaged).unwrap();
    let (ledger, _) = at(november_us(), &place);
    ledger.enter(row(2));
    until("it is there", &ledger, |status| status.rows_total == 1);
    assert!(ledger.shutdown(LONG));
    assert_eq!(fs::read(&october).unwrap(), damaged);
    fs::remove_file(&october).unwrap();
    assert_eq!(billed(&place), expected(&[("2026-11", 1)]));
}

/// A ledger in November beside an October of one row that another process writes.
fn held() -> (Place, rusqlite::Connection, Ledger) {
    let place = Place::new();
    let (ledger, _) = at(NOON_US, &place);
    ledger.enter(row(0));
    assert!(ledger.shutdown(LONG));
    let (ledger, _) = at(november_us(), &place);
    ledger.enter(new(1));
    until("November is there", &ledger, |status| status.rows_total == 1);
    let other = rusqlite::Connection::open(place.path("x-2026-10.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    ledger.enter(row(2));
    ledger.enter(new(3));
    (place, other, ledger)
}

#[test]
fn locked_past_month_is_waited_for() {
    let (place, other, ledger) = held();
    until("it is reported", &ledger, |status| {
        status.faults_total[Fault::Locked as usize] > 0
            && status.fault_message.as_ref().is_some_and(|message| message.contains("2026-10"))
    });
    other.execute_batch("ROLLBACK").unwrap();
    until("both are there", &ledger, |status| status.rows_total == 3 && status.up);
    assert!(ledger.shutdown(LONG));
    drop(other);
    assert_eq!(billed(&place), expected(&[("2026-10", 2), ("2026-11", 2)]), "nothing was closed");
    well(&place);
}

/// The end does not wait for it: late in another month is better than lost.
#[test]
fn locked_past_month_does_not_delay_the_end() {
    let (place, other, ledger) = held();
    assert!(ledger.shutdown(LONG), "{:?}", ledger.status());
    assert_eq!(ledger.status().lost_rows_total, 0);
    drop(other);
    assert_eq!(billed(&place), expected(&[("2026-10", 1), ("2026-11", 3)]));
    well(&place);
}

/// With two files of one month the next month is still entered, and the status has the remedy.
#[test]
fn month_with_two_files_does_not_stop_writer() {
    let place = Place::new();
    let (ledger, hands) = at(NOON_US, &place);
    ledger.enter(row(0));
    until("October is there", &ledger, |status| status.rows_total == 1);
    fs::write(place.path("x-2026-10.db"), "another one").unwrap();
    hands.store(november_us(), Ordering::SeqCst);
    [new(1), row(2)].into_iter().for_each(|row| ledger.enter(row));
    until("both are there", &ledger, |status| status.rows_total == 3);
    until("it is reported", &ledger, |status| {
        status.up
            && status.fault_message.as_ref().is_some_and(|message| message.contains("hold the same month"))
    });
    assert!(ledger.shutdown(LONG));
    fs::remove_file(place.path("x-2026-10.db")).unwrap();
    let (ledger, _) = at(november_us(), &place);
    ledger.enter(new(3));
    until("it is well", &ledger, |status| status.rows_total == 1 && status.fault_message.is_none());
    assert!(ledger.shutdown(LONG));
    assert_eq!(billed(&place), expected(&[("2026-10", 2), ("2026-11", 2)]));
    assert_eq!(place.names(), ["x-2026-10.db", "x.db", "x.db.lock"]);
    well(&place);
}

/// A process that began in 2099 does not keep the month from being the open one when the clock is right.
#[test]
fn clock_far_ahead_leaves_no_future_month_open() {
    let far_us = NOON_US + 73 * 365 * DAY_US;
    let far = Row { ended_us: far_us, ..row(1) };
    for from_october in [true, false] {
        let place = Place::new();
        if from_october {
            let (ledger, _) = at(NOON_US, &place);
            ledger.enter(row(0));
            assert!(ledger.shutdown(LONG));
        }
        let (ledger, hands) = at(far_us, &place);
        ledger.enter(far.clone());
        until("the far one is there", &ledger, |status| status.rows_total == 1);
        hands.store(NOON_US, Ordering::SeqCst);
        ledger.enter(row(2));
        until("the other is there", &ledger, |status| status.rows_total == 2);
        assert!(ledger.shutdown(LONG));
        assert_eq!(place.names(), ["x-2099-09.db", "x.db", "x.db.lock"]);
        let october = if from_october { 2 } else { 1 };
        assert_eq!(billed(&place), expected(&[("2026-10", october), ("2099-09", 1)]));
        assert_eq!(File::open_read(&place.ledger()).unwrap().month, self::october());
        well(&place);
    }
}

/// Clocks are set back a little at midnight: nothing is moved for that. And never is a closed month opened.
#[test]
fn clock_slightly_ahead_changes_nothing() {
    for (back_us, is_reported) in [(2_000_000, false), (3 * DAY_US, true)] {
        let place = Place::new();
        let (ledger, _) = at(NOON_US, &place);
        ledger.enter(row(0));
        assert!(ledger.shutdown(LONG));
        crate::close(&place.ledger(), october(), "ann", november_us()).unwrap();
        let closed = fs::read(place.path("x-2026-10.db")).unwrap();
        let (ledger, hands) = at(november_us(), &place);
        ledger.enter(new(1));
        until("it is there", &ledger, |status| status.rows_total == 1);
        hands.store(november_us() - back_us, Ordering::SeqCst);
        ledger.enter(new(2));
        // A row is acknowledged before the status has the fault.
        until("the next is", &ledger, |status| {
            status.rows_total == 2 && status.fault_message.is_some() == is_reported
        });
        hands.store(november_us(), Ordering::SeqCst);
        ledger.enter(new(3));
        until("it is well", &ledger, |status| status.rows_total == 3 && status.fault_message.is_none());
        assert!(ledger.shutdown(LONG));
        assert_eq!(fs::read(place.path("x-2026-10.db")).unwrap(), closed);
        assert_eq!(File::open_read(&place.ledger()).unwrap().month, october() + 1);
        assert_eq!(billed(&place), expected(&[("2026-10", 1), ("2026-11", 3)]));
    }
}
