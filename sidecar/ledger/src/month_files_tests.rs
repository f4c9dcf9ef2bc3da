//! The writer's files when one of them is not as it was left.

use std::fs;
use std::time::{Duration, Instant};

use super::{IDLE_TIME, LOG_MAX_BYTES, MonthFiles, READ_MAX};
use crate::source::{Gap, Month, Range, Source};
use crate::testing::{NOON_US, Place, notes, row};
use crate::txn::Txn;
use crate::{Fault, Row, Store, files, month};

const OCTOBER_US: i64 = NOON_US;

fn november_us() -> i64 {
    month::begin_us(october() + 1) + 1_000_000
}

fn october() -> Month {
    month::of(OCTOBER_US)
}

fn ready(place: &Place, now_us: i64) -> MonthFiles {
    let mut month_files = MonthFiles::new(place.ledger(), "test".into(), crate::Calendar::default());
    // A program that another test starts has a copy of an ended writer's lock until it runs.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match month_files.ready(now_us) {
            Err(error) if error.fault == Fault::Locked && Instant::now() < end => std::thread::yield_now(),
            ready => break ready.unwrap(),
        }
    }
    month_files
}

fn enter(month_files: &mut MonthFiles, month: Month, row: &Row, now_us: i64) {
    let file = if month_files.open_month() == Some(month) {
        month_files.open_file().unwrap()
    } else {
        month_files.file(month, now_us).unwrap()
    };
    let mut txn = Txn::begin(file).unwrap();
    if let price::Charge::Priced { rate, .. } = &row.charge {
        txn.rates([&**rate]).unwrap();
    }
    txn.exchanges([row]).unwrap();
    txn.commit().unwrap();
}

/// Overwrites a file and its log.
fn spoil(place: &Place, name: &str) {
    for name in [name.to_owned(), format!("{name}-wal")] {
        if let Ok(content) = fs::read(place.path(&name)) {
            use std::io::Write;
            // In place: who has it open reads this.
            let mut file = fs::OpenOptions::new().write(true).open(place.path(&name)).unwrap();
            file.write_all(&vec![0xa5; content.len()]).unwrap();
        }
    }
}

/// November open with a row of its own, and October open beside it with a late one.
fn two_months(place: &Place) -> MonthFiles {
    let mut month_files = ready(place, november_us());
    let new = Row { ended_us: november_us(), ..row(1) };
    enter(&mut month_files, october() + 1, &new, november_us());
    enter(&mut month_files, october(), &row(2), november_us());
    month_files
}

/// Models of what is billed, and the gaps.
fn read(place: &Place) -> (Vec<(Month, u64)>, Vec<Gap>) {
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut months = std::collections::BTreeMap::new();
    store
        .daily_totals(&Range::ALL, &mut |month, line| {
            *months.entry(month).or_default() += line.sums.exchanges;
            Ok(())
        })
        .unwrap();
    (months.into_iter().collect(), store.gaps(&Range::ALL).unwrap())
}

const QUARANTINED: &str = "x-2026-10.db.corrupt-2026-11-01T00-00-01Z";

#[track_caller]
fn only_october_is_aside(place: &Place, month_files: &MonthFiles) {
    let names = place.names();
    let quarantined: Vec<_> =
        names.iter().filter(|name| name.contains("corrupt") && !name.ends_with("-wal")).collect();
    assert_eq!(quarantined, [QUARANTINED], "{names:?}");
    assert_eq!((month_files.update.quarantined, month_files.update.gaps), (1, 1));
    assert_eq!(month_files.update.faults, [Fault::Corrupt]);
    let (months, gaps) = read(place);
    assert_eq!(months, [(october() + 1, 1)], "the open month has its row");
    let found: Vec<_> = gaps.iter().map(|gap| (month::of(gap.from_us), &*gap.why)).collect();
    assert_eq!(found, [(october(), "corrupt")]);
}

#[test]
fn damaged_past_month_is_quarantined_alone() {
    let place = Place::new();
    let mut month_files = two_months(&place);
    spoil(&place, "x-2026-10.db");
    let long_ago = Instant::now().checked_sub(IDLE_TIME + Duration::from_secs(1)).unwrap();
    month_files.files.get_mut(&october()).unwrap().used = long_ago;
    month_files.tick(november_us()).unwrap();
    assert_eq!(month_files.open_month(), Some(october() + 1));
    only_october_is_aside(&place, &month_files);
    month_files.end(november_us()).unwrap();
}

#[test]
fn damaged_past_month_does_not_prevent_the_end() {
    let place = Place::new();
    let mut month_files = two_months(&place);
    spoil(&place, "x-2026-10.db");
    month_files.end(november_us()).unwrap();
    only_october_is_aside(&place, &month_files);
    drop(month_files);
    let mut again = ready(&place, november_us());
    assert_eq!((again.update.gaps, again.update.quarantined), (0, 0), "the open month was left in order");
    again.end(november_us()).unwrap();
}

#[test]
fn damaged_month_is_quarantined_after_crash() {
    let place = Place::new();
    let mut month_files = two_months(&place);
    month_files.update = super::StatusUpdate::default();
    let crashed = place.copy();
    spoil(&crashed, "x-2026-10.db");
    let again = ready(&crashed, november_us());
    assert_eq!(again.open_month(), Some(october() + 1));
    let (months, _) = read(&crashed);
    assert_eq!(months, [(october() + 1, 1)]);
    assert_eq!(again.update.quarantined, 1);
    assert!(crashed.names().contains(&QUARANTINED.to_owned()), "{:?}", crashed.names());
}

/// A log keeps its length when it was written back; that is no reason to do it again after each commit.
#[test]
fn long_log_is_checkpointed() {
    let place = Place::new();
    let mut month_files = ready(&place, OCTOBER_US);
    let length = || files::length(&files::beside(&place.ledger(), "-wal"));
    let mut rows = (1..).map(row);
    while month_files.open_file().unwrap().log_bytes().unwrap() <= LOG_MAX_BYTES {
        let file = month_files.open_file().unwrap();
        let mut txn = Txn::begin(file).unwrap();
        for row in rows.by_ref().take(512) {
            if let price::Charge::Priced { rate, .. } = &row.charge {
                txn.rates([&**rate]).unwrap();
            }
            txn.exchanges([&row]).unwrap();
        }
        txn.commit().unwrap();
    }
    assert!(length() > LOG_MAX_BYTES);
    month_files.checkpoint_long_logs(OCTOBER_US).unwrap();
    assert_eq!(month_files.open_file().unwrap().log_bytes().unwrap(), 0);
    enter(&mut month_files, october(), &rows.next().unwrap(), OCTOBER_US);
    assert!(length() > LOG_MAX_BYTES, "as long as before");
    let left = month_files.open_file().unwrap().log_bytes().unwrap();
    month_files.checkpoint_long_logs(OCTOBER_US).unwrap();
    let now = month_files.open_file().unwrap().log_bytes().unwrap();
    assert!(now == left && 0 < left && left < LOG_MAX_BYTES, "one row: {left} bytes, then {now}");
    month_files.end(OCTOBER_US).unwrap();
    let entered = u64::try_from(rows.next().unwrap().ended_us - NOON_US).unwrap() - 1;
    assert_eq!(read(&place).0, [(october(), entered)]);
}

/// The disk was full, or the process died, between the two.
#[test]
fn interrupted_quarantine_leaves_gap() {
    let place = Place::new();
    let mut month_files = two_months(&place);
    month_files.end(november_us()).unwrap();
    drop(month_files);
    fs::rename(place.ledger(), place.path("x.db.corrupt-2026-11-01T00-00-01Z")).unwrap();
    fs::rename(place.path("x-2026-10.db"), place.path("x-2026-10.db.corrupt-2026-12-01T00-00-01Z")).unwrap();
    // Told in October, by a file that is another month's by now.
    fs::write(place.path("x.db.corrupt-2026-10-09T00-00-01Z"), "").unwrap();
    let mut month_files = ready(&place, november_us());
    enter(&mut month_files, october(), &row(3), november_us());
    assert_eq!((month_files.update.gaps, month_files.update.quarantined), (2, 0));
    let (_, gaps) = read(&place);
    let mut found: Vec<_> = gaps.iter().map(|gap| (month::of(gap.from_us), &*gap.why)).collect();
    found.sort_unstable();
    assert_eq!(found, [(october(), "corrupt"), (october() + 1, "corrupt")]);
    month_files.end(november_us()).unwrap();
    assert_eq!(ready(&place, november_us()).update.gaps, 0, "once");
}

/// A late row makes a file anew; that there was another is not forgotten.
#[test]
fn absent_file_leaves_gap_in_its_successor() {
    let place = Place::new();
    let mut month_files = ready(&place, OCTOBER_US);
    enter(&mut month_files, october(), &row(1), OCTOBER_US);
    // The first turns the file, the second opens the next.
    month_files.ready(november_us()).unwrap();
    month_files.ready(november_us()).unwrap();
    assert_eq!(month_files.open_month(), Some(october() + 1));
    month_files.end(november_us()).unwrap();
    drop(month_files);
    fs::remove_file(place.path("x-2026-10.db")).unwrap();
    let store = Store::open_read(&place.ledger()).unwrap();
    let gone: Vec<_> = store.gone().unwrap().into_iter().map(|gone| gone.month).collect();
    assert_eq!(gone, [october()]);
    let mut month_files = ready(&place, november_us());
    assert_eq!(month_files.update.gaps, 0);
    enter(&mut month_files, october(), &row(2), november_us());
    assert_eq!(month_files.update.gaps, 1);
    let (months, gaps) = read(&place);
    assert_eq!(months, [(october(), 1)]);
    assert_eq!((month::of(gaps[0].from_us), &*gaps[0].why), (october(), "gone"));
    month_files.end(november_us()).unwrap();
}

#[test]
fn reader_that_blocks_month_end_is_reported() {
    let place = Place::new();
    let mut month_files = ready(&place, OCTOBER_US);
    enter(&mut month_files, october(), &row(1), OCTOBER_US);
    let reader = Store::open_read(&place.ledger()).unwrap();
    month_files.ready(november_us()).unwrap();
    assert_eq!(
        (month_files.fault_message(), month_files.update.faults.len()),
        (None, 0),
        "a report takes seconds"
    );
    month_files.read_since = Instant::now().checked_sub(READ_MAX);
    month_files.tried_to_move = None;
    month_files.ready(november_us()).unwrap();
    let message = month_files.fault_message().unwrap().to_owned();
    for part in [
        "x.db has the rows of 2026-10, which is over",
        "another program reads it",
        "rows of 2026-11 go to",
        "x-2026-11.db",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert_eq!(month_files.update.faults, [Fault::Locked]);
    drop(reader);
    month_files.tried_to_move = None;
    month_files.ready(november_us()).unwrap();
    assert_eq!((month_files.fault_message(), month_files.read_since), (None, None));
    assert!(place.names().contains(&"x-2026-10.db".to_owned()), "{:?}", place.names());
    month_files.end(november_us()).unwrap();
}

#[test]
fn corrupt_open_file_is_noted_in_earlier_months() {
    let place = Place::new();
    let mut month_files = two_months(&place);
    month_files.end(november_us()).unwrap();
    drop(month_files);
    spoil(&place, "x.db");
    ready(&place, november_us()).end(november_us()).unwrap();
    let noted = |month| notes(&place.ledger(), month, "(corrupt)").len();
    assert_eq!([0, 1, 2].map(|later| noted(october() + later)), [1, 1, 0]);
}

#[test]
fn corrupt_past_month_is_not_noted_later() {
    let place = Place::new();
    let mut month_files = two_months(&place);
    spoil(&place, "x-2026-10.db");
    month_files.files.get_mut(&october()).unwrap().used = Instant::now().checked_sub(IDLE_TIME * 2).unwrap();
    month_files.tick(november_us()).unwrap();
    month_files.end(november_us()).unwrap();
    let noted = |month| notes(&place.ledger(), month, "(corrupt)").len();
    assert_eq!([-1, 0, 1].map(|later| noted(october() + later)), [1, 1, 0]);
}

/// A month that is over has no log for a moment.
#[test]
fn writer_without_a_log_is_not_noted() {
    let place = Place::new();
    let mut month_files = ready(&place, november_us());
    assert!(month_files.open_file().unwrap().settle().unwrap());
    assert_eq!(notes(&place.ledger(), october() + 1, "-wal"), [""; 0]);
    drop(month_files);
    assert_eq!(notes(&place.ledger(), october() + 1, "-wal").len(), 1);
}

#[test]
fn writer_that_fails_leaves_its_log() {
    let place = Place::new();
    let mut month_files = ready(&place, november_us());
    enter(&mut month_files, october() + 1, &Row { ended_us: november_us(), ..row(1) }, november_us());
    month_files.fail(Fault::Full);
    drop(month_files);
    assert_eq!(notes(&place.ledger(), october() + 1, "-wal"), [""; 0]);
    let mut again = ready(&place, november_us() + 1);
    again.end(november_us() + 1).unwrap();
    assert_eq!(read(&place).1.iter().map(|gap| &*gap.why).collect::<Vec<_>>(), ["crash"]);
}

/// A total that no new row adds to: the writer itself would never read it, and no report could.
#[test]
fn damage_in_unread_total_is_found_at_opening() {
    let place = Place::new();
    let mut month_files = ready(&place, OCTOBER_US);
    enter(&mut month_files, october(), &row(1), OCTOBER_US);
    month_files.end(OCTOBER_US).unwrap();
    drop(month_files);
    let connection = rusqlite::Connection::open(place.ledger()).unwrap();
    assert_eq!(connection.execute("UPDATE line SET exchanges = exchanges + 1", []).unwrap(), 1);
    connection.close().unwrap();
    let mut again = ready(&place, OCTOBER_US + 1);
    assert_eq!(again.update.quarantined, 1);
    enter(&mut again, october(), &row(2), OCTOBER_US + 1);
    again.end(OCTOBER_US + 1).unwrap();
    assert_eq!(read(&place).0, [(october(), 1)], "the new row is in a sound file");
}
