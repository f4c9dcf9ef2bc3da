//! Ledgers of other time zones than UTC: the store has the days, months and digests of their files. Rows end near
//! midnight and near the ends of months, in UTC and in the zone, also on days on which clocks are changed.

use std::collections::BTreeMap;

use ledger::source::{Month, Range, Source};
use ledger::{Calendar, Row, Store, Zone, month, period};
use postgres::Client;
use report::{Key, Query};

use super::closing::{WAIT_TIMEOUT, address, adjust, adjustment, billed, number, reprice, shipped, well};
use super::ledgers::{TestLedger, arrives, same};
use super::resend::{central, no_file_waits};
use super::rows::{at, batch, origin, row};
use super::server::{Place, shared, until};
use crate::send::send;
use crate::{Shipper, close, forget, schema};

fn berlin() -> Zone {
    Zone::named("Europe/Berlin").unwrap()
}

fn us(time: &str) -> i64 {
    period::instant(time).unwrap()
}

/// Midnights of Berlin and of UTC, and the hour that Berlin has twice.
const TIMES: [&str; 12] = [
    "2026-08-31T22:00:00Z",
    "2026-09-01T00:00:00Z",
    "2026-09-15T22:00:00Z",
    "2026-09-30T22:00:00Z",
    "2026-10-01T00:00:00Z",
    "2026-10-24T22:00:00Z",
    "2026-10-25T00:00:00Z",
    "2026-10-25T01:00:00Z",
    "2026-10-25T22:00:00Z",
    "2026-10-25T23:00:00Z",
    "2026-10-31T23:00:00Z",
    "2026-11-01T00:00:00Z",
];

/// The time of the ledgers: the month of the last of [`TIMES`] is open.
const NOW: &str = "2026-11-02T12:00:00Z";

const CLOSED: [&str; 3] = ["2026-08", "2026-09", "2026-10"];

/// Returns the rows of these numbers. They end within a second before or after one of [`TIMES`].
fn rows(numbers: std::ops::Range<u64>) -> impl Iterator<Item = Row> {
    numbers.map(|number| {
        let around_us = us(TIMES[(number / 2) as usize % TIMES.len()]);
        at(row(number), around_us - i64::from(number.is_multiple_of(2)) * 1_000_000 + number as i64)
    })
}

/// Returns a ledger of a time zone whose open month is November.
fn ledger_of(zone: Zone) -> TestLedger {
    let book = TestLedger::of(zone);
    book.set_now(us(NOW));
    book
}

fn ended(shipper: Shipper, rows: u64) {
    shipped(&shipper, rows);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
}

fn count(owner: &mut Client, sql: &str) -> i64 {
    owner.query_one(sql, &[]).unwrap().get(0)
}

/// Returns the number of exchanges of each month, and checks that rows and totals agree on it.
fn by_month(source: &dyn Source) -> BTreeMap<Month, u64> {
    let (calendar, mut months) = (source.calendar(), BTreeMap::new());
    for month in number("2026-07")..=number("2026-12") {
        let mut rows = 0;
        let range = Range::of_month(&calendar, month);
        source
            .rows(&range, &mut |billed, row, _| {
                assert_eq!((billed, calendar.month(row.ended_us)), (month, month));
                rows += 1;
                Ok(())
            })
            .unwrap();
        let mut totals = 0;
        source
            .daily_totals(&range, &mut |billed, total| {
                assert_eq!(billed, month);
                totals += total.sums.exchanges;
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, totals, "{}", month::name(month));
        months.insert(month, rows);
    }
    months
}

#[test]
#[ignore = "needs PostgreSQL"]
fn store_has_the_days_and_digests_of_its_files() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = ledger_of(berlin());
    book.enter_rows(rows(0..240));
    let mut kept = Vec::new();
    let copy = Place::new().unwrap();
    book.meanwhile(|path| kept.push(super::closing::copied(path, &copy)));
    let ledger = kept.remove(0);
    let shipper = book.ship(&url, 32);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    well(&database);

    let (local, there) = (Store::open_read(&book.path()).unwrap(), central(&database));
    assert_eq!(there.calendar(), Calendar::of(berlin()));
    assert_eq!(by_month(&local), by_month(&there));
    // Rows between instants that begin no day of Berlin.
    let part = Range { since_us: us("2026-10-01"), until_us: us("2026-11-01") };
    let of_part = |source: &dyn Source| {
        let mut rows = 0;
        source
            .rows(&part, &mut |_, row, _| {
                rows += i32::from(part.holds(row.ended_us));
                Ok(())
            })
            .unwrap();
        rows
    };
    assert_eq!(of_part(&local), of_part(&there));

    let mut days: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows(0..240) {
        *days.entry(period::day(Calendar::of(berlin()).day(row.ended_us))).or_default() += 1;
    }
    for view in [
        "SELECT day::text, count(*) FROM tokenmeter.exchanges GROUP BY 1",
        "SELECT day::text, sum(exchanges)::bigint FROM tokenmeter.spend_daily GROUP BY 1",
        "SELECT day::text, count(*) FROM tokenmeter.charges GROUP BY 1",
    ] {
        let found = owner.query(view, &[]).unwrap();
        let found: BTreeMap<String, i64> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(found, days, "{view}");
    }

    for name in CLOSED {
        let signed = close(&address(&database), number(name), "ann").unwrap();
        let sql = "SELECT (extract(epoch FROM closed_at) * 1000000)::bigint FROM tokenmeter.closing \
                   WHERE to_char(month, 'YYYY-MM') = $1";
        let at_us = owner.query_one(sql, &[&name]).unwrap().get(0);
        let own = ledger::close(&ledger, number(name), "ann", at_us).unwrap();
        assert_eq!(signed.document["files"][0]["digest"].as_str(), Some(&*own.digest), "{name}");
        for equal in ["exchanges", "rows", "energy_rows", "cost", "tokens", "energy_joules"] {
            assert_eq!(signed.document[equal], own.document[equal], "{name} {equal}");
        }
    }
    well(&database);
    assert_eq!(by_month(&local), by_month(&central(&database)));

    // Late rows of a closed month are billed in the first open one, and keep their day.
    let before = billed(&database);
    book.enter_rows(rows(240..300));
    ended(book.ship(&url, 32), 300);
    let after = billed(&database);
    for name in CLOSED {
        assert_eq!(after[&number(name)], before[&number(name)], "{name}");
    }
    assert_eq!(after.values().map(|(exchanges, _)| exchanges).sum::<u64>(), 300);
    well(&database);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn store_is_repriced_and_adjusted_by_the_time_zone() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = ledger_of(berlin());
    book.enter_rows(rows(0..120));
    ended(book.ship(&url, 32), 120);
    let before = billed(&database);
    assert!(reprice(&address(&database), 9).unwrap() > 60);
    well(&database);
    assert!(adjust(&address(&database), &adjustment("outage", "2026-09")).unwrap());
    assert!(!adjust(&address(&database), &adjustment("outage", "2026-09")).unwrap());
    let adjusted =
        "SELECT count(*) FROM tokenmeter.corrections WHERE day = '2026-09-01' AND model = '__adjustment__'";
    assert_eq!(count(&mut owner, adjusted), 1);
    let days = "SELECT count(*) FROM tokenmeter.corrections c JOIN tokenmeter.exchanges x \
                ON x.id = c.exchange AND x.day <> c.day";
    assert_eq!(count(&mut owner, days), 0);
    well(&database);
    let after = billed(&database);
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    close(&address(&database), number(CLOSED[0]), "ann").unwrap();
    well(&database);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn forgotten_month_is_that_of_the_time_zone() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = ledger_of(berlin());
    book.enter_rows(rows(0..240));
    let shipper = book.ship(&url, 32);
    arrives(&book, &shipper, &url);
    let (expected, sums) = (by_month(&central(&database)), billed(&database));
    let rows_of = |database: &str| -> BTreeMap<Month, u64> {
        central(database).verify(None).unwrap().iter().map(|verdict| (verdict.month, verdict.rows)).collect()
    };
    let mut left = rows_of(&database);
    assert!(left.iter().all(|(month, rows)| expected[month] == *rows), "{left:?} {expected:?}");
    for name in ["2026-09", "2026-08", "2026-10"] {
        owner.batch_execute(&format!("SELECT tokenmeter.forget('{name}')")).unwrap();
        left.insert(number(name), 0);
        assert_eq!(rows_of(&database), left, "{name}");
        assert_eq!(billed(&database), sums, "{name}");
        well(&database);
        // Sent again, no row of it returns, and none of another month is lost.
        owner.batch_execute("SELECT tokenmeter.send_again(instance) FROM tokenmeter.file").unwrap();
        until("all files are sent again", || no_file_waits(&mut owner));
        until("all is well", || shipper.status().up);
        assert_eq!(rows_of(&database), left, "{name}, sent again");
        assert_eq!(billed(&database), sums, "{name}, sent again");
    }
    let kept = count(&mut owner, "SELECT count(*) FROM tokenmeter.exchange") as u64;
    assert_eq!(kept, left[&number("2026-11")]);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    assert!(forget(&address(&database), 0).unwrap().is_empty());
}

/// A month is over when it is over for all its ledgers.
#[test]
#[ignore = "needs PostgreSQL"]
fn ledgers_of_one_store_keep_their_time_zones() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let zones = ["Europe/Berlin", "UTC", "America/New_York", "Europe/Berlin"];
    let mut books = zones.map(|name| ledger_of(Zone::named(name).unwrap()));
    let mut of_days: BTreeMap<String, i64> = BTreeMap::new();
    for (book, (zone, first)) in books.iter_mut().zip(zones.iter().zip([0, 1000, 2000, 3000])) {
        let calendar = Calendar::of(Zone::named(zone).unwrap());
        book.enter_rows(rows(first..first + 96));
        for row in rows(first..first + 96) {
            *of_days.entry(period::day(calendar.day(row.ended_us))).or_default() += 1;
        }
        ended(book.ship(&url, 32), 96);
    }
    well(&database);
    let sql = "SELECT day::text, sum(exchanges)::bigint FROM tokenmeter.spend_daily GROUP BY 1";
    let found: BTreeMap<String, i64> =
        owner.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, of_days);
    let there = central(&database);
    assert_eq!(there.calendar(), Calendar::of(berlin()), "that of most files");
    let report = report::make(&there, &Query::all(us(NOW))).unwrap();
    let note = "the time zones of the ledger files of 2026-10 are Europe/Berlin, America/New_York, UTC: each exchange \
                is on the day of its ledger";
    assert!(report.notes.sentences(&Range::ALL).iter().any(|said| said == note), "{:?}", report.notes);
    for month in CLOSED.map(number) {
        let range = Range::of_month(&there.calendar(), month);
        // The first from daily totals, the second from rows.
        let exchanges = [Key::Tenant, Key::Consumer].map(|key| {
            let query = Query { range, by: vec![key], ..Query::all(us(NOW)) };
            let totals = report::make(&there, &query).unwrap().totals;
            totals.iter().map(|total| total.sums.exchanges).sum::<i128>()
        });
        let expected: i64 =
            of_days.iter().filter(|(day, _)| day.starts_with(&month::name(month))).map(|(_, n)| n).sum();
        assert_eq!(exchanges, [i128::from(expected); 2], "{}", month::name(month));
    }
    let end = "SELECT (extract(epoch FROM tokenmeter.month_end('2026-10-01')) * 1000000)::bigint";
    assert_eq!(count(&mut owner, end), us("2026-11-01T04:00:00Z"));
    owner.batch_execute("DELETE FROM tokenmeter.file WHERE time_zone <> 'Europe/Berlin'").unwrap();
    assert_eq!(count(&mut owner, end), us("2026-10-31T23:00:00Z"));
}

/// A machine without a clock begins in 1970, in a zone west of UTC before its first day. All of that is the first month.
#[test]
#[ignore = "needs PostgreSQL"]
fn forgotten_first_month_has_all_earlier_instants() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = ledger_of(Zone::named("America/New_York").unwrap());
    let early = |number: u64| at(row(number), 2_000_000 + number as i64);
    book.enter_rows([early(1), early(2), row(3)]);
    let shipper = book.ship(&url, 32);
    shipped(&shipper, 3);
    well(&database);
    owner.batch_execute("SELECT tokenmeter.forget('1970-01')").unwrap();
    book.enter_rows([early(4), row(5)]);
    until("all is shipped", || {
        let status = shipper.status();
        let reached: i64 = status.files.iter().map(|file| file.shipped.exchange).sum();
        status.up && reached as u64 == book.entered()
    });
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    assert_eq!(count(&mut owner, "SELECT count(*) FROM tokenmeter.exchange"), 2);
    let totals = "SELECT sum(exchanges)::bigint FROM tokenmeter.line WHERE day < '1970-02-01'";
    assert_eq!(count(&mut owner, totals), 3);
}

/// A change begins with the next month, at the instant at which the month before ends.
#[test]
#[ignore = "needs PostgreSQL"]
fn change_of_the_time_zone_reaches_the_store() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter_rows(rows(0..22).filter(|row| row.ended_us < us("2026-10-31")));
    let first = book.entered();
    ended(book.ship(&url, 32), first);
    book.change_zone(berlin());
    // The change is planned when the first row is on the disk.
    book.enter_rows([at(row(98), us("2026-10-24T22:30:00Z"))]);
    book.set_now(us(NOW));
    let calendar = Calendar::read("UTC, from 2026-11 on Europe/Berlin").unwrap();
    book.enter_rows(rows(20..24).chain(rows(44..48)));
    let last = at(row(99), us("2026-11-10T23:30:00Z"));
    assert_eq!(calendar.day(last.ended_us), month::day(last.ended_us) + 1);
    book.enter_rows([last]);
    let shipper = book.ship(&url, 32);
    shipped(&shipper, book.entered());
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    same(&book.path(), &url);
    well(&database);
    assert_eq!(central(&database).calendar(), calendar);
    assert_eq!(by_month(&Store::open_read(&book.path()).unwrap()), by_month(&central(&database)));
}

/// A role can prevent neither the closing of a month nor reports.
#[test]
#[ignore = "needs PostgreSQL"]
fn invalid_time_zone_is_refused() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(vec![row(1)])).unwrap();
    let set = |end: &str| {
        format!(
            "SELECT tokenmeter.set_time_zone(instance, 'x', '2026-10-01T00:00:00Z', '{end}') FROM tokenmeter.file"
        )
    };
    owner.batch_execute(&set("2026-11-01T12:00:00Z")).unwrap();
    let error = owner.batch_execute(&set("2030-11-01T12:00:00Z")).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "23514");
    // A zone that this version does not know.
    let there = central(&database);
    assert_eq!((there.calendar(), there.mixed_zones()), (Calendar::default(), vec![(681, "x".to_owned())]));
    let named = set("2026-11-01T12:00:00Z").replace("'x'", "E'x\\n'");
    assert_eq!(owner.batch_execute(&named).unwrap_err().code().unwrap().code(), "23514");
}
