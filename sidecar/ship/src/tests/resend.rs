//! A store that has forgotten a month, or that has a ledger file sent again: it reports what the ledger has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ledger::export::{Cursor, ExportReader, ShipBatch};
use ledger::source::{Correction, DAY_US, Gap, MadeCorrection, Range, Source};
use ledger::{Class, DailyTotal};
use meter::ExchangeId;
use postgres::Client;
use price::Book as Prices;

use super::batches::correction;
use super::ledgers::{TestLedger, arrives};
use super::rows::{NOON_US, added_up, batch, by_key, energy, origin, row, rows};
use super::server::{shared, until};
use crate::error::Scope;
use crate::send::send;
use crate::{Address, Central, Shipper, schema};

const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn central(database: &str) -> Central {
    Central::open(&Address::parse(&shared().url(database)).unwrap()).unwrap()
}

fn lines(database: &str) -> Vec<DailyTotal> {
    let mut lines = Vec::new();
    let mut keep = |_, line: &DailyTotal| {
        lines.push(line.clone());
        Ok(())
    };
    central(database).daily_totals(&Range::ALL, &mut keep).unwrap();
    lines
}

fn count(owner: &mut Client, sql: &str) -> i64 {
    owner.query_one(sql, &[]).unwrap().get(0)
}

fn send_again(owner: &mut Client) {
    owner.batch_execute("SELECT tokenmeter.send_again(instance) FROM tokenmeter.file").unwrap();
}

pub(crate) fn no_file_waits(owner: &mut Client) -> bool {
    count(owner, "SELECT count(*) FROM tokenmeter.file WHERE resend_since IS NOT NULL") == 0
}

#[test]
#[ignore = "needs PostgreSQL"]
fn forgotten_month_that_is_sent_again_counts_once() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(400);
    let shipper = book.ship(&url, 30);
    arrives(&book, &shipper, &url);
    let before = by_key(&lines(&database));
    let rows = count(&mut owner, "SELECT count(*) FROM tokenmeter.exchange");
    owner.batch_execute("SELECT tokenmeter.forget('2026-09')").unwrap();
    let left = count(&mut owner, "SELECT count(*) FROM tokenmeter.exchange");
    assert!(left > 0 && left < rows, "{left} of {rows}");
    assert_eq!(by_key(&lines(&database)), before);
    send_again(&mut owner);
    until("all files are sent again", || no_file_waits(&mut owner));
    assert_eq!(by_key(&lines(&database)), before);
    assert_eq!(count(&mut owner, "SELECT count(*) FROM tokenmeter.exchange"), left, "its rows stay away");
    // Rows of that month that come for the first time are counted, too.
    book.enter(200);
    let local = ledger::Store::open_read(&book.path()).unwrap();
    let mut expected = Vec::new();
    let mut keep = |_, line: &DailyTotal| {
        expected.push(line.clone());
        Ok(())
    };
    local.daily_totals(&Range::ALL, &mut keep).unwrap();
    until("the new rows are counted", || by_key(&lines(&database)) == by_key(&expected));
    until("all is well", || shipper.status().up);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn forget_refuses_anything_but_past_months() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(vec![row(1)])).unwrap();
    for (month, reason) in [
        ("october", "no month"),
        ("2026-13", "no month"),
        ("2026-09", "nothing of 2026-09"),
        ("2026-10", "may not be over"),
    ] {
        let error = owner.batch_execute(&format!("SELECT tokenmeter.forget('{month}')")).unwrap_err();
        let message = error.as_db_error().unwrap().message();
        assert!(message.contains(reason), "{month}: {message}");
    }
}

/// A later partition proves nothing: a node whose clock was ahead made it.
#[test]
#[ignore = "needs PostgreSQL"]
fn month_that_is_not_over_cannot_be_forgotten() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    let months = "SELECT tokenmeter.ensure_months(
        ARRAY[(now() AT TIME ZONE 'UTC')::date - date '1970-01-01', date '9000-01-01' - date '1970-01-01'])";
    owner.batch_execute(months).unwrap();
    let forget = "SELECT tokenmeter.forget(to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM'))";
    let error = owner.batch_execute(forget).unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("may not be over"), "{error}");
}

/// A month that is forgotten between two batches of one connection.
#[test]
#[ignore = "needs PostgreSQL"]
fn batch_of_a_month_forgotten_meanwhile_is_refused() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    let mut november = row(2);
    november.ended_us += 31 * DAY_US;
    send(&mut owner, origin(1), "host", &batch(vec![row(1), november])).unwrap();
    owner.batch_execute("SELECT tokenmeter.forget('2026-10')").unwrap();
    let error = send(&mut owner, origin(1), "host", &batch(vec![row(1)])).unwrap_err();
    assert_eq!(error.scope, Scope::File, "{error}");
    let used: Vec<_> = energy(&row(3), 3).into_iter().collect();
    let only_energy = ShipBatch { energy: used, ..ShipBatch::default() };
    assert!(send(&mut owner, origin(1), "host", &only_energy).is_err());
}

#[test]
#[ignore = "needs PostgreSQL"]
fn store_awaiting_a_file_reports_existing_rows() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(300);
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
    let (before, gaps) = (lines(&database), central(&database).gaps(&Range::ALL).unwrap());
    send_again(&mut owner);
    assert_eq!(by_key(&lines(&database)), by_key(&before));
    let mut since = central(&database).gaps(&Range::ALL).unwrap();
    since.retain(|gap| !gaps.contains(gap));
    assert!(since.len() >= 3 && since.iter().all(|gap| &*gap.why == "file to be sent again"), "{since:?}");
    // Even of a file that the store has no row of.
    owner.batch_execute("DELETE FROM tokenmeter.file").unwrap();
    assert_eq!(by_key(&lines(&database)), by_key(&before));
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn unchanged_file_sent_again_counts_once() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(300);
    let shipper = book.ship(&url, 64);
    arrives(&book, &shipper, &url);
    for _ in 0..3 {
        send_again(&mut owner);
        book.enter(10);
        until("all files are sent again", || no_file_waits(&mut owner));
        arrives(&book, &shipper, &url);
    }
    let nowhere = "SELECT tokenmeter.send_again('00000000-0000-0000-0000-000000000000')";
    assert!(owner.batch_execute(nowhere).unwrap_err().to_string().contains("db error"));
    assert_eq!(shipper.status().failures, [0; 3]);
}

/// The months' files, to be put back later.
fn files(book: &TestLedger) -> Vec<PathBuf> {
    ExportReader::of(&book.path()).files().unwrap()
}

pub(crate) fn backup(path: &Path) -> PathBuf {
    path.with_extension("backup")
}

pub(crate) fn reprice(book: &TestLedger, price: u32) -> u64 {
    let kinds =
        ["input", "cache_write_1h", "output", "input_audio", "output_audio", "output_image", "output_video"];
    let kinds = kinds.map(|kind| format!("{kind}: {price}")).join(", ");
    let text = format!("version: v{price}\ncurrency: USD\nmodels:\n- {{pattern: '*', {kinds}}}\n");
    let (prices, _) = Prices::read(&text).unwrap();
    let again = report::Reprice {
        range: Range::ALL,
        filters: &[],
        unpriced_only: false,
        book: &prices,
        who: "finance",
        at_us: NOON_US + 10 * DAY_US + i64::from(price),
    };
    report::reprice(&book.path(), &again).unwrap().entered
}

/// Runs the remedy that the shipper names for each file that it does not send.
pub(crate) fn follow_remedies(owner: &mut Client, shipper: &Shipper) {
    let mut followed = BTreeSet::new();
    until("no file is left behind", || {
        let status = shipper.status();
        let Some(message) = status.error else { return status.up && !followed.is_empty() };
        let remedy = message.split('`').nth(1).unwrap().to_owned();
        assert!(remedy.starts_with("SELECT tokenmeter.send_again("), "{message}");
        if followed.insert(remedy.clone()) {
            owner.batch_execute(&remedy).unwrap();
        }
        false
    });
}

/// The store has corrections that no file has any more, those of a closed month in the file of a later one among them.
#[test]
#[ignore = "needs PostgreSQL"]
fn restored_and_repriced_ledger_agrees_again() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut owner = shared().client(&database).unwrap();
    let mut book = TestLedger::new();
    book.enter(400);
    for month in ["2026-07", "2026-09"] {
        let month = ledger::month::read(month).unwrap();
        ledger::close(&book.path(), month, "finance", NOON_US + 9 * DAY_US).unwrap();
    }
    let closed = files(&book);
    book.meanwhile(|_| {
        for file in &closed {
            assert!(std::fs::copy(file, backup(file)).unwrap() > 0);
        }
    });
    assert!(reprice(&book, 9) > 300);
    let shipper = book.ship(&url, 100);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(WAIT_TIMEOUT));

    book.meanwhile(|_| {
        for file in &closed {
            let _ = std::fs::remove_file(file);
            std::fs::copy(backup(file), file).unwrap();
        }
    });
    assert!(reprice(&book, 4) > 300);
    let shipper = book.ship(&url, 100);
    until("it is reported", || shipper.status().error.is_some());
    follow_remedies(&mut owner, &shipper);
    until("all files are sent again", || no_file_waits(&mut owner));
    // A rate stays, though nothing names it.
    let unused =
        "DELETE FROM tokenmeter.rate r WHERE NOT EXISTS (SELECT FROM tokenmeter.line l WHERE l.rate = r.id)";
    assert_eq!(owner.execute(unused, &[]).unwrap(), 1);
    arrives(&book, &shipper, &url);
    assert!(shipper.shutdown(WAIT_TIMEOUT));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn correction_with_the_id_of_another_is_refused() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    let made = |delta_pico: i128| {
        let line = correction(delta_pico);
        let (id, exchange, ended_us) = (ExchangeId([3; 16]), row(1).id, row(1).ended_us);
        let correction = Correction { id, made_us: NOON_US, exchange, line, ended_us };
        ShipBatch {
            corrections: vec![MadeCorrection { act: 1, correction }],
            next: Cursor::default(),
            ..batch(Vec::new())
        }
    };
    send(&mut owner, origin(1), "host", &made(17)).unwrap();
    send(&mut owner, origin(1), "host", &made(17)).unwrap();
    for (from, delta_pico) in [(1, 18), (2, 17), (2, 18)] {
        let error = send(&mut owner, origin(from), "host", &made(delta_pico)).unwrap_err();
        assert_eq!(error.scope, Scope::File);
        let remedy = "send_again('01010101-0101-0101-0101-010101010101')";
        assert!(error.message.contains("with another content") && error.message.contains(remedy), "{error}");
    }
    assert_eq!(lines(&database).iter().map(|line| line.sums.cost_pico).sum::<i128>(), 17);
    // Sent again, its file has another one in its place.
    send_again(&mut owner);
    let rest = ShipBatch { is_rest: true, ..made(5) };
    send(&mut owner, origin(1), "host", &rest).unwrap();
    assert_eq!(lines(&database).iter().map(|line| line.sums.cost_pico).sum::<i128>(), 5);
}

/// Retention took rows of the file once the store had confirmed them.
#[test]
#[ignore = "needs PostgreSQL"]
fn resent_rows_are_no_gap() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    let taken = |rows: u64| {
        let gap = Gap {
            lost_rows: Some(rows),
            totals_kept: true,
            ..Gap::unknown(NOON_US, NOON_US + 1, "retention")
        };
        let next = Cursor { exchange: rows as i64, ..Cursor::default() };
        ShipBatch { gaps: vec![(-1, gap)], next, ..ShipBatch::default() }
    };
    let lost = |rows: Option<u64>| {
        let mut gaps = central(&database).gaps(&Range::ALL).unwrap();
        gaps.retain(|gap| &*gap.why == "retention");
        assert_eq!(gaps.first().map(|gap| gap.lost_rows), rows.map(Some));
    };
    send(&mut owner, origin(1), "host", &batch(rows(0..10))).unwrap();
    for (sent, expected) in [(9, None), (10, None), (12, Some(2))] {
        send_again(&mut owner);
        send(&mut owner, origin(1), "host", &taken(sent)).unwrap();
        lost(expected);
    }
    // The store had none of another file's.
    send(&mut owner, origin(2), "host", &taken(7)).unwrap();
    assert_eq!(count(&mut owner, "SELECT sum(lost_rows)::bigint FROM tokenmeter.gap"), 9);
}

/// The ledger's open file was damaged and began anew, and what its corrections had charged is charged again.
#[test]
#[ignore = "needs PostgreSQL"]
fn corrections_of_given_up_file_are_replaced() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(vec![row(1)])).unwrap();
    let before = lines(&database);
    let made = |from: u8, delta_pico: i128| {
        let line = correction(delta_pico);
        let (id, exchange, ended_us) = (ExchangeId([3; 16]), row(1).id, row(1).ended_us);
        let correction = Correction { id, made_us: NOON_US, exchange, line, ended_us };
        let batch = ShipBatch {
            corrections: vec![MadeCorrection { act: 1, correction }],
            next: Cursor::default(),
            ..batch(Vec::new())
        };
        send(&mut shared().client(&database).unwrap(), origin(from), "host", &batch)
    };
    made(1, 17).unwrap();
    let message = made(2, 18).unwrap_err().message;
    let remedy = message.split('`').find(|part| part.contains("give_up")).unwrap().to_owned();
    owner.batch_execute(&remedy).unwrap();
    assert_eq!(by_key(&lines(&database)), by_key(&before));
    made(2, 18).unwrap();
    let corrected = lines(&database)
        .iter()
        .filter(|line| line.key.class == Class::Correction)
        .map(|line| line.sums.cost_pico)
        .sum::<i128>();
    assert_eq!(corrected, 18);
    assert!(no_file_waits(&mut owner));
}

/// The store went back behind the cursor: a later batch would leave a gap.
#[test]
#[ignore = "needs PostgreSQL"]
fn batch_after_what_the_store_has_is_refused() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    schema::ensure(&mut owner).unwrap();
    send(&mut owner, origin(1), "host", &batch(vec![row(1), row(2)])).unwrap();
    let later = ShipBatch { after: Cursor { exchange: 3, ..Cursor::default() }, ..batch(vec![row(4)]) };
    let error = send(&mut owner, origin(1), "host", &later).unwrap_err();
    assert_eq!(error.scope, Scope::Batch);
    assert_eq!(by_key(&lines(&database)), added_up(&[row(1), row(2)], &[]));
}
