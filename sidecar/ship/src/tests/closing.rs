//! Months that are closed at the store: their digests, what arrives later, and corrections that are made there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ledger::source::{Month, Range, Source};
use ledger::{Adjustment, month};
use postgres::Client;
use price::{Book, Currency};

use super::ledgers::TestLedger;
use super::resend::{central, no_file_waits};
use super::rows::NOON_US;
use super::server::{Place, shared, until};
use crate::{Address, Amender, Shipper, close};

pub(super) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The months of a test's ledger.
pub(super) const MONTHS: [&str; 3] = ["2026-07", "2026-09", "2026-10"];

pub(super) fn number(name: &str) -> Month {
    month::read(name).unwrap()
}

pub(super) fn address(database: &str) -> Address {
    Address::parse(&shared().url(database)).unwrap()
}

/// Waits until the store has this number of exchanges of a ledger, and the ledger nothing else.
pub(super) fn shipped(shipper: &Shipper, rows: u64) {
    until("all is shipped", || {
        let status = shipper.status();
        let reached: i64 = status.files.iter().map(|file| file.shipped.exchange).sum();
        status.up && reached as u64 == rows && status.files.iter().all(|file| file.complete)
    });
}

/// The exchanges and the money of each month, as billed.
pub(super) fn billed(database: &str) -> BTreeMap<Month, (u64, i128)> {
    let mut months = BTreeMap::<Month, (u64, i128)>::new();
    central(database)
        .daily_totals(&Range::ALL, &mut |billed, line| {
            let sum = months.entry(billed).or_default();
            *sum = (sum.0 + line.sums.exchanges, sum.1 + line.sums.cost_pico);
            Ok(())
        })
        .unwrap();
    months
}

#[track_caller]
pub(super) fn well(database: &str) {
    for verdict in central(database).verify(None).unwrap() {
        assert_eq!(verdict.differences, Vec::<String>::new(), "{}", month::name(verdict.month));
    }
}

fn count(owner: &mut Client, sql: &str) -> i64 {
    owner.query_one(sql, &[]).unwrap().get(0)
}

/// Copies the files of a ledger, which nothing writes.
pub(super) fn copied(ledger: &Path, to: &Place) -> PathBuf {
    for entry in std::fs::read_dir(ledger.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let _ = std::fs::create_dir_all(to.path(""));
        std::fs::copy(entry.path(), to.path(entry.file_name().to_str().unwrap())).unwrap();
    }
    to.path("x.db")
}

#[test]
#[ignore = "needs PostgreSQL"]
fn digest_of_a_file_equals_its_own_closing() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(500);
    // Every fourth is of a month before.
    [4_000, 4_004, 4_008, 4_012].into_iter().for_each(|number| book.enter_energy_of_lost(number));
    let copy = Place::new().unwrap();
    let mut ledger = PathBuf::new();
    book.meanwhile(|path| ledger = copied(path, &copy));
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 500);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    let mut owner = shared().client(&database).unwrap();
    let mut before = None;
    for name in &MONTHS[..2] {
        let signed = close(&address(&database), number(name), "ann").unwrap();
        let at = owner
            .query_one(
                "SELECT (extract(epoch FROM closed_at) * 1000000)::bigint FROM tokenmeter.closing \
                 WHERE to_char(month, 'YYYY-MM') = $1",
                &[name],
            )
            .unwrap();
        let own = ledger::close(&ledger, number(name), "ann", at.get(0)).unwrap();
        let files = signed.document["files"].as_array().unwrap();
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(files[0]["digest"].as_str(), Some(&*own.digest), "{name}");
        assert_eq!(files[0]["is_shipped_to_its_end"], true);
        let lost = "SELECT count(*) FROM tokenmeter.energy WHERE class = 'shed' AND tenant IS NOT NULL \
                    AND instance = (SELECT instance FROM tokenmeter.file WHERE to_char(month, 'YYYY-MM') = $1)";
        assert!(owner.query_one(lost, &[name]).unwrap().get::<_, i64>(0) > 0, "{name}");
        for equal in
            ["exchanges", "rows", "energy_rows", "correction_rows", "gaps", "cost", "tokens", "energy_joules"]
        {
            assert_eq!(signed.document[equal], own.document[equal], "{equal}");
        }
        assert_eq!(signed.document["previous_digest"].as_str(), before.as_deref());
        assert_eq!(close(&address(&database), number(name), "bob").unwrap(), signed, "once");
        assert_eq!(
            central(&database).closure(number(name)).unwrap().digest().map(|digest| &**digest),
            Some(&*signed.digest)
        );
        before = Some(signed.digest);
    }
    let is_closed = MONTHS.map(|name| central(&database).closure(number(name)).unwrap().is_closed());
    assert_eq!(is_closed, [Some(true), Some(true), Some(false)]);
    well(&database);

    // A row, GPU use and the sign-off of a closed month cannot change unseen.
    for (change, back) in [
        (
            "UPDATE tokenmeter.exchange SET consumer = 'x' WHERE id = (SELECT id FROM tokenmeter.exchange \
             WHERE ended_at < '2026-10-01' AND consumer = 'someone' ORDER BY id LIMIT 1)",
            "UPDATE tokenmeter.exchange SET consumer = 'someone' WHERE consumer = 'x'",
        ),
        (
            "UPDATE tokenmeter.energy SET gpu_ns = gpu_ns + 1 WHERE class = 'shed' AND ended_at < '2026-10-01'",
            "UPDATE tokenmeter.energy SET gpu_ns = gpu_ns - 1 WHERE class = 'shed' AND ended_at < '2026-10-01'",
        ),
        (
            "UPDATE tokenmeter.closing SET closed_by = 'x' || closed_by",
            "UPDATE tokenmeter.closing SET closed_by = substr(closed_by, 2)",
        ),
    ] {
        assert!(owner.execute(change, &[]).unwrap() > 0, "{change}");
        let differences: usize =
            central(&database).verify(None).unwrap().iter().map(|verdict| verdict.differences.len()).sum();
        assert!(differences > 0, "{change}");
        owner.batch_execute(back).unwrap();
        well(&database);
    }
    // Not even the schema's owner can enter rows in a closed month.
    let entered = "INSERT INTO tokenmeter.gap SELECT instance, 99, now(), now(), 'x', 1, true FROM tokenmeter.closed_file";
    let error = owner.batch_execute(entered).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "TM004");
    // Rows that are forgotten were signed off.
    owner.batch_execute("SELECT tokenmeter.forget('2026-07')").unwrap();
    well(&database);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn late_rows_are_billed_in_next_open_month() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(400);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 400);
    for name in &MONTHS[..2] {
        close(&address(&database), number(name), "ann").unwrap();
    }
    let before = billed(&database);
    book.enter(200);
    shipped(&shipper, 600);
    let after = billed(&database);
    for name in &MONTHS[..2] {
        assert_eq!(after[&number(name)], before[&number(name)], "{name}");
    }
    let counted = |from: u64, to: u64| (from..to).filter(|number| number % 7 != 3).count() as u64;
    let exchanges: u64 = after.values().map(|(exchanges, _)| exchanges).sum();
    assert_eq!(exchanges, counted(0, 600));
    let october = after[&number("2026-10")].0 - before[&number("2026-10")].0;
    assert_eq!(october, counted(400, 600), "all that came later");
    well(&database);
    // Sent again, nothing of it is doubled, neither in the closed months nor in the open one.
    owner
        .batch_execute("SELECT tokenmeter.send_again(instance) FROM tokenmeter.file WHERE late_of IS NULL")
        .unwrap();
    until("all files are sent again", || no_file_waits(&mut owner));
    shipped(&shipper, 600);
    assert_eq!(billed(&database), after);
    assert_eq!(count(&mut owner, "SELECT count(*) FROM tokenmeter.exchange"), 600);
    well(&database);
    // What came late for a closed month is late again once that is closed.
    close(&address(&database), number("2026-10"), "ann").unwrap();
    book.enter(40);
    shipped(&shipper, 640);
    let last = billed(&database);
    assert_eq!(last[&number("2026-10")], after[&number("2026-10")]);
    assert_eq!(last[&number("2026-11")].0, counted(600, 640));
    well(&database);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn months_are_closed_in_order_after_their_end() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(100);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 100);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    let refused = |name: &str, part: &str| {
        let error = close(&address(&database), number(name), "ann").unwrap_err().to_string();
        assert!(error.contains(part), "{name}: {error}");
    };
    refused("2026-09", "2026-07 is not closed. Close it first");
    refused("2026-06", "no ledger file of it");
    refused("2999-01", "it is not over. It can be closed from 2999-02-01T00:00:00Z on");
    owner.batch_execute("SELECT tokenmeter.send_again(instance) FROM tokenmeter.file").unwrap();
    refused("2026-07", "is being sent again");
    owner.batch_execute("UPDATE tokenmeter.file SET resend_since = NULL").unwrap();
    owner
        .batch_execute("UPDATE tokenmeter.line SET exchanges = exchanges + 1 WHERE day < '2026-08-01'")
        .unwrap();
    refused("2026-07", "it does not verify");
    assert_eq!(count(&mut owner, "SELECT count(*) FROM tokenmeter.closing"), 0);
    owner
        .batch_execute("UPDATE tokenmeter.line SET exchanges = exchanges - 1 WHERE day < '2026-08-01'")
        .unwrap();
    close(&address(&database), number("2026-07"), "ann").unwrap();
    refused("2026-06", "2026-07 is closed");
}

fn prices(price: u32) -> Book {
    let kinds =
        ["input", "cache_write_1h", "output", "input_audio", "output_audio", "output_image", "output_video"];
    let kinds = kinds.map(|kind| format!("{kind}: {price}")).join(", ");
    let text = format!("version: v{price}\ncurrency: USD\nmodels:\n- {{pattern: '*', {kinds}}}\n");
    Book::read(&text).unwrap().0
}

/// Reprices a store, and returns the number of new corrections.
pub(super) fn reprice(address: &Address, price: u32) -> Result<u64, ledger::SourceError> {
    let book = prices(price);
    let request = report::Reprice {
        range: Range::ALL,
        filters: &[],
        unpriced_only: false,
        book: &book,
        who: "finance",
        at_us: NOON_US + 10 * ledger::source::DAY_US,
    };
    let mut store = Amender::open(address)?;
    let central = crate::Central::open(address)?;
    let amend = &mut |amendment: &ledger::Amendment<'_>| Ok(store.amend(amendment)?);
    Ok(report::reprice_by(central, &request, amend)?.entered)
}

pub(super) fn adjustment(reason: &str, month: &str) -> Adjustment {
    Adjustment::new("tenant-1", -50_000_000_000_000, Currency::USD, number(month), reason).unwrap()
}

pub(super) fn adjust(address: &Address, adjustment: &Adjustment) -> Result<bool, ledger::SourceError> {
    let mut store = Amender::open(address)?;
    let at_us = NOON_US + 10 * ledger::source::DAY_US;
    let calendar = crate::Central::open(address)?.calendar();
    adjustment.enter(&calendar, "finance", at_us, |amendment| Ok(store.amend(amendment)?))
}

/// Also of ledgers that are lost.
#[test]
#[ignore = "needs PostgreSQL"]
fn store_is_repriced_and_adjusted_once() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(300);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 300);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    drop(book);
    let at = address(&database);
    let expected: i128 = (0..300)
        .map(TestLedger::row)
        .filter(|row| row.role.is_counted())
        .map(|row| i128::from(row.charge_again(&prices(9)).cost().unwrap()))
        .sum();
    assert!(reprice(&at, 9).unwrap() > 200);
    assert_eq!(reprice(&at, 9).unwrap(), 0);
    let total = |months: &BTreeMap<Month, (u64, i128)>| months.values().map(|(_, pico)| pico).sum::<i128>();
    assert_eq!(total(&billed(&database)), expected);
    let adjusted = "SELECT count(*) FROM tokenmeter.audit WHERE what = 'adjusted'";
    for is_new in [true, false] {
        assert_eq!(adjust(&at, &adjustment("outage", "2026-09")).unwrap(), is_new);
        assert_eq!(count(&mut owner, adjusted), 1, "a repetition is no event");
    }
    assert_eq!(total(&billed(&database)), expected - 50_000_000_000_000);
    well(&database);

    for name in &MONTHS[..2] {
        close(&at, number(name), "ann").unwrap();
    }
    let before = billed(&database);
    assert!(reprice(&at, 4).unwrap() > 200);
    assert!(adjust(&at, &adjustment("second outage", "2026-09")).unwrap());
    assert!(!adjust(&at, &adjustment("outage", "2026-09")).unwrap(), "it is in the closed month");
    let after = billed(&database);
    for name in &MONTHS[..2] {
        assert_eq!(after[&number(name)], before[&number(name)], "{name}");
    }
    assert_ne!(after[&number("2026-10")], before[&number("2026-10")]);
    well(&database);
    let acts =
        "SELECT count(*) FROM tokenmeter.audit WHERE what IN ('repriced', 'adjusted') AND who = 'finance'";
    assert!(count(&mut owner, acts) >= 4);
    let reason = "SELECT count(*) FROM tokenmeter.prices WHERE price_entry = 'second outage'";
    assert_eq!(count(&mut owner, reason), 1);
}

/// A signed digest covers that of the file before: neither one that is known late nor a later one changes it.
#[test]
#[ignore = "needs PostgreSQL"]
fn file_before_changes_no_signed_digest() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(200);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 200);
    let forged = "UPDATE tokenmeter.file f SET previous = CASE WHEN month = '2026-07-01' THEN \
                  (SELECT instance FROM tokenmeter.file WHERE month = '2026-09-01') END WHERE month < '2026-10-01'";
    owner.batch_execute(forged).unwrap();
    for name in &MONTHS[..2] {
        close(&address(&database), number(name), "ann").unwrap();
        well(&database);
    }
    book.enter(200);
    shipped(&shipper, 400);
    well(&database);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
}

/// At the end of a month the writer may be unable to rename the open file, which another process reads.
#[test]
#[ignore = "needs PostgreSQL"]
fn file_before_is_of_an_earlier_month() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(200);
    assert!(book.end());
    let (open, past) = (book.path(), |name| book.path().with_file_name(format!("x-{name}.db")));
    std::fs::rename(&open, past("2026-10")).unwrap();
    std::fs::rename(past("2026-09"), &open).unwrap();
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 200);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    let wrong = "SELECT count(*) FROM tokenmeter.file f JOIN tokenmeter.file p ON p.instance = f.previous \
                 WHERE p.month >= f.month";
    assert_eq!(count(&mut owner, wrong), 0);
    assert_eq!(count(&mut owner, "SELECT count(previous) FROM tokenmeter.file"), 2);
}

/// In a month of its own it would be on no bill, and that month would have to be closed first.
#[test]
#[ignore = "needs PostgreSQL"]
fn adjustment_before_the_first_file_is_billed_in_its_month() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(300);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 300);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    let at = address(&database);
    let before = billed(&database);
    assert!(adjust(&at, &adjustment("credit", "2020-01")).unwrap());
    let after = billed(&database);
    let (first, (_, pico)) = before.first_key_value().unwrap();
    assert_eq!(after.first_key_value().unwrap(), (first, &(before[first].0, pico - 50_000_000_000_000)));
    close(&at, *first, "ann").unwrap();
    well(&database);
}

/// A correction that a file made before it was known that the store makes them.
#[test]
#[ignore = "needs PostgreSQL"]
fn correction_made_in_the_store_stays() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(100);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 100);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    assert!(reprice(&address(&database), 9).unwrap() > 0);
    let before = billed(&database);
    assert!(super::resend::reprice(&book, 4) > 0);
    let shipper = book.ship(&url, 64);
    shipped(&shipper, 100);
    assert_eq!(billed(&database), before);
    well(&database);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
}
