//! A ledger whose days are not those of UTC, and one that changes its zone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::adjust::Adjustment;
use crate::corrections::{ChargeChange, id_of};
use crate::export::{Cursor, ExportReader, ShipBatch};
use crate::source::{Correction, Month, Range, Source, Used};
use crate::testing::{Place, rate, row};
use crate::{
    Amendment, DailyTotal, EnergyRow, Ledger, LedgerFolder, Plan, Row, Store, Zone, adjust, close, files,
    month, overview, period, start, verify,
};

const LONG: Duration = Duration::from_secs(30);
const OCTOBER: i32 = 681;
const NOVEMBER: i32 = 682;

/// Returns the instant of a time in UTC, as `2026-10-31T23:30`.
fn at(time: &str) -> i64 {
    period::instant(&format!("{time}:00Z")).unwrap()
}

fn begin_at(place: &Place, zone: &str, now: &Arc<AtomicI64>) -> Ledger {
    let clock = Arc::clone(now);
    start(Plan {
        clock: Arc::new(move || clock.load(Ordering::SeqCst)),
        time_zone: Some(Zone::named(zone).unwrap()),
        ..Plan::new(place.ledger())
    })
}

fn begin(place: &Place, zone: &str, now: &str) -> Ledger {
    begin_at(place, zone, &Arc::new(AtomicI64::new(at(now))))
}

/// Enters rows that ended at these times, each with its GPU use, and waits until they are on the disk.
fn enter(ledger: &Ledger, times: &[&str]) -> Vec<Row> {
    let before = ledger.status().rows_total;
    let rows: Vec<Row> = times
        .iter()
        .enumerate()
        .map(|(n, time)| {
            let ended_us = at(time);
            let id = meter::ExchangeId::new(ended_us.unsigned_abs() * 1000, n as u128);
            Row { id, ended_us, ..row(2 * n as u64) }
        })
        .collect();
    for row in &rows {
        ledger.enter(row.clone());
        ledger.energy(EnergyRow::of(row, Used { gpu_ns: Some(7), gpu_hours_pico: 3, ..Used::default() }));
    }
    let end = Instant::now() + LONG;
    while ledger.status().rows_total < before + rows.len() as u64 || ledger.status().queued_rows > 0 {
        assert!(Instant::now() < end, "{:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(5));
    }
    rows
}

/// Returns the month that each day's total is billed in, with the day and its exchanges.
fn billed(place: &Place, range: &Range) -> Vec<(String, String, u64)> {
    let mut found = std::collections::BTreeMap::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .daily_totals(range, &mut |billed, line: &DailyTotal| {
            *found.entry((billed, line.key.day)).or_default() += line.sums.exchanges;
            Ok(())
        })
        .unwrap();
    found.into_iter().map(|((month, day), count)| (month::name(month), period::day(day), count)).collect()
}

fn written(expected: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
    expected.iter().map(|(month, day, count)| ((*month).into(), (*day).into(), *count)).collect()
}

#[track_caller]
fn verified(place: &Place) {
    for verdict in verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, [], "{}", verdict.path.display());
    }
}

/// Returns a column of a view of a month's file.
fn view(place: &Place, month: i32, sql: &str) -> Vec<String> {
    let path = files::of_month(&place.ledger(), month);
    let path = if path.exists() { path } else { place.ledger() };
    let file = rusqlite::Connection::open(path).unwrap();
    let mut statement = file.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn new_ledger_has_the_days_of_its_zone() {
    let place = Place::new();
    let now = Arc::new(AtomicI64::new(at("2026-10-31T22:00")));
    let ledger = begin_at(&place, "Europe/Berlin", &now);
    enter(&ledger, &["2026-10-30T22:59", "2026-10-30T23:00", "2026-10-31T21:59"]);
    now.store(at("2026-10-31T23:40"), Ordering::SeqCst);
    enter(&ledger, &["2026-10-31T22:59", "2026-10-31T23:30"]);
    assert!(ledger.shutdown(LONG));
    let totals =
        written(&[("2026-10", "2026-10-30", 1), ("2026-10", "2026-10-31", 3), ("2026-11", "2026-11-01", 1)]);
    assert_eq!(billed(&place, &Range::ALL), totals);
    let zone = LedgerFolder::open(&place.ledger()).calendar().unwrap();
    assert_eq!(zone.to_string(), "Europe/Berlin");
    assert_eq!(billed(&place, &Range::of_month(&zone, NOVEMBER)), totals[2..]);
    assert_eq!(billed(&place, &Range::of_month(&zone, OCTOBER)), totals[..2]);
    for sql in ["SELECT day FROM exchanges", "SELECT day FROM gpu_use", "SELECT day FROM requests"] {
        assert_eq!(view(&place, NOVEMBER, sql), ["2026-11-01"], "{sql}");
    }
    assert_eq!(overview(&place.ledger()).unwrap().calendar, Some(zone));
    verified(&place);
    // By UTC October would not be over.
    assert!(close(&place.ledger(), OCTOBER, "ann", at("2026-10-31T22:59")).is_err());
    let sign_off = close(&place.ledger(), OCTOBER, "ann", at("2026-10-31T23:45")).unwrap();
    assert_eq!(sign_off.document["time_zone"], "Europe/Berlin");
    assert_eq!(sign_off.document["exchanges"], 4);
    verified(&place);
}

#[test]
fn change_begins_with_the_next_month() {
    let place = Place::new();
    let ledger = begin(&place, "UTC", "2026-10-10T12:00");
    enter(&ledger, &["2026-10-09T22:30"]);
    assert!(ledger.shutdown(LONG));
    let now = Arc::new(AtomicI64::new(at("2026-10-20T12:00")));
    let ledger = begin_at(&place, "Europe/Berlin", &now);
    assert_eq!(ledger.calendar().to_string(), "UTC, from 2026-11 on Europe/Berlin");
    enter(&ledger, &["2026-10-19T22:30"]);
    // The first day of November begins where October ends, an hour after midnight in Berlin.
    now.store(at("2026-11-01T12:00"), Ordering::SeqCst);
    enter(&ledger, &["2026-10-31T23:30", "2026-11-01T00:00", "2026-11-01T22:59", "2026-11-01T23:00"]);
    now.store(at("2026-11-30T23:10"), Ordering::SeqCst);
    enter(&ledger, &["2026-11-30T22:59", "2026-11-30T23:00"]);
    assert!(ledger.shutdown(LONG));
    let totals = written(&[
        ("2026-10", "2026-10-09", 1),
        ("2026-10", "2026-10-19", 1),
        ("2026-10", "2026-10-31", 1),
        ("2026-11", "2026-11-01", 2),
        ("2026-11", "2026-11-02", 1),
        ("2026-11", "2026-11-30", 1),
        ("2026-12", "2026-12-01", 1),
    ]);
    assert_eq!(billed(&place, &Range::ALL), totals);
    let zones = LedgerFolder::open(&place.ledger()).calendar().unwrap();
    assert_eq!(billed(&place, &Range::of_month(&zones, NOVEMBER)), totals[3..6]);
    let audit = "SELECT detail FROM audit WHERE what = 'time_zone'";
    assert_eq!(view(&place, OCTOBER, audit), [r#"{"calendar":"UTC, from 2026-11 on Europe/Berlin"}"#]);
    assert_eq!(view(&place, NOVEMBER, audit), [""; 0]);
    for (month, zone) in [(OCTOBER, None), (NOVEMBER, Some("Europe/Berlin"))] {
        let sign_off = close(&place.ledger(), month, "ann", at("2026-11-30T23:20")).unwrap();
        assert_eq!(sign_off.document["time_zone"].as_str(), zone);
    }
    verified(&place);
}

#[test]
fn change_can_be_taken_back_until_it_begins() {
    let place = Place::new();
    for (zone, now, expected) in [
        ("UTC", "2026-10-10T12:00", "UTC"),
        ("Europe/Berlin", "2026-10-11T12:00", "UTC, from 2026-11 on Europe/Berlin"),
        ("Asia/Tokyo", "2026-10-12T12:00", "UTC, from 2026-11 on Asia/Tokyo"),
        ("UTC", "2026-10-13T12:00", "UTC"),
        ("Asia/Tokyo", "2026-10-14T12:00", "UTC, from 2026-11 on Asia/Tokyo"),
        ("Asia/Tokyo", "2026-11-14T12:00", "UTC, from 2026-11 on Asia/Tokyo"),
        // The clock is wrong: the change has begun all the same.
        ("UTC", "1999-11-14T12:00", "UTC, from 2026-11 on Asia/Tokyo, from 2026-12 on UTC"),
        ("UTC", "2026-11-15T12:00", "UTC, from 2026-11 on Asia/Tokyo, from 2026-12 on UTC"),
    ] {
        let ledger = begin(&place, zone, now);
        assert_eq!(ledger.calendar().to_string(), expected, "{now}");
        let end = Instant::now() + LONG;
        while !ledger.status().up {
            assert!(Instant::now() < end, "{:?}", ledger.status());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(ledger.shutdown(LONG));
        assert_eq!(LedgerFolder::open(&place.ledger()).calendar().unwrap().to_string(), expected, "{now}");
    }
}

/// A program without the setting, and a ledger whose open file cannot be read.
#[test]
fn ledger_keeps_its_zone() {
    let place = Place::new();
    let ledger = begin(&place, "Europe/Berlin", "2026-10-10T12:00");
    enter(&ledger, &["2026-09-09T22:30", "2026-10-09T22:30"]);
    assert!(ledger.shutdown(LONG));
    let clock: crate::Clock = Arc::new(|| at("2026-10-11T12:00"));
    let ledger = start(Plan { clock, ..Plan::new(place.ledger()) });
    assert_eq!(ledger.calendar().to_string(), "Europe/Berlin");
    assert!(ledger.shutdown(LONG));
    std::fs::write(place.ledger(), "no ledger at all").unwrap();
    let ledger = begin(&place, "UTC", "2026-10-12T12:00");
    enter(&ledger, &["2026-10-11T22:30"]);
    assert!(ledger.shutdown(LONG));
    assert_eq!(
        LedgerFolder::open(&place.ledger()).calendar().unwrap().to_string(),
        "Europe/Berlin, from 2026-11 on UTC",
        "the file of September has it"
    );
}

#[test]
fn corrections_and_adjustments_are_of_the_months_of_the_zone() {
    let place = Place::new();
    let now = Arc::new(AtomicI64::new(at("2026-10-31T22:00")));
    let ledger = begin_at(&place, "America/New_York", &now);
    enter(&ledger, &["2026-10-31T21:59"]);
    now.store(at("2026-11-10T12:00"), Ordering::SeqCst);
    // An hour of UTC's November that is New York's October.
    let rows = enter(&ledger, &["2026-11-01T03:30", "2026-11-01T04:30"]);
    assert!(ledger.shutdown(LONG));
    let price::Charge::Priced { rate, .. } = rate(0) else { panic!("it has a price") };
    for row in &rows {
        let row = Row {
            day: crate::row::other_day(
                LedgerFolder::open(&place.ledger()).calendar().unwrap().day(row.ended_us),
                row.ended_us,
            ),
            ..row.clone()
        };
        let change = ChargeChange { billed: 0, rate: Some(rate.id), first_price: false, delta_pico: 5 };
        let (id, line) = (id_of(&row.id, row.ended_us, 0), change.line(&row));
        let made = Correction {
            id,
            made_us: at("2026-11-10T12:00"),
            exchange: row.id,
            line,
            ended_us: row.ended_us,
        };
        let amendment = Amendment {
            what: "repriced",
            who: "ann",
            detail: "{}",
            at_us: at("2026-11-10T12:00"),
            rates: &[&rate],
            corrections: &[made],
        };
        assert_eq!(LedgerFolder::open(&place.ledger()).amend(&amendment).unwrap(), 1);
    }
    for month in [OCTOBER, NOVEMBER] {
        let credit = Adjustment::new("acme", -5, price::Currency::USD, month, "outage").unwrap();
        for is_new in [true, false] {
            assert_eq!(adjust(&place.ledger(), &credit, "ann", at("2026-11-10T12:00")).unwrap(), is_new);
        }
    }
    verified(&place);
    let days = "SELECT day FROM corrections ORDER BY model";
    assert_eq!(view(&place, OCTOBER, days), ["2026-10-01", "2026-10-31"]);
    assert_eq!(view(&place, NOVEMBER, days), ["2026-11-01", "2026-11-01"]);
    let store = Store::open_read(&place.ledger()).unwrap();
    for month in [OCTOBER, NOVEMBER] {
        let mut of_month = 0;
        let range = Range::of_month(&store.calendar(), month);
        store
            .corrections(&range, &mut |billed, made| {
                assert_eq!((billed, month::of_day(made.line.key.day)), (month, month));
                of_month += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(of_month, 2);
    }
    assert!(close(&place.ledger(), OCTOBER, "ann", at("2026-11-10T12:00")).is_ok());
}

#[test]
fn shipped_rows_have_the_days_of_the_ledger() {
    let place = Place::new();
    let ledger = begin(&place, "Europe/Berlin", "2026-10-10T12:00");
    // The second is of October here, and of September in UTC.
    enter(&ledger, &["2026-10-09T21:30", "2026-09-30T22:30"]);
    assert!(ledger.shutdown(LONG));
    let batch = |forgotten: &[Month]| {
        let reader = ExportReader::of(&place.ledger());
        let forgotten = forgotten.iter().copied().collect();
        reader.open(&place.ledger()).unwrap().batch(Cursor::default(), 10, &forgotten).unwrap()
    };
    let days = |batch: &ShipBatch| batch.rows.iter().map(|row| period::day(row.day())).collect::<Vec<_>>();
    for forgotten in [&[][..], &[OCTOBER - 1]] {
        let batch = batch(forgotten);
        assert_eq!(batch.calendar.to_string(), "Europe/Berlin");
        assert_eq!(days(&batch), ["2026-10-09", "2026-10-01"]);
    }
    let without = batch(&[OCTOBER]);
    assert_eq!(without.rows, []);
    assert_eq!(without.usage.iter().map(|line| line.sums.exchanges).sum::<u64>(), 2);
}
