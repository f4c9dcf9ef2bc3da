//! A month from its last row until retention deletes its rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::close;
use crate::retain::{self, Next};
use crate::running::Ledger;
use crate::source::{Correction, DAY_US, Month, Range, Source, Used};
use crate::testing::{NOON_US, Place, rate, row};
use crate::{
    Amendment, DailyTotal, Difference, EnergyRow, LedgerFolder, Plan, Row, Store, Sums, TotalKey, files,
    month, start, verify,
};

const LONG: Duration = Duration::from_secs(30);

fn october() -> Month {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + 1_000_000
}

fn at(us: i64, place: &Place, keep_days: u32) -> (Ledger, Arc<AtomicI64>) {
    let hands = Arc::new(AtomicI64::new(us));
    let clock = Arc::clone(&hands);
    let clock: crate::Clock = Arc::new(move || clock.load(Ordering::SeqCst));
    (start(Plan { clock, keep_days, who: "test".into(), ..Plan::new(place.ledger()) }), hands)
}

/// A ledger with an October of a hundred rows, written in October.
fn with_october() -> Place {
    let place = Place::new();
    let (ledger, _) = at(NOON_US, &place, 0);
    (0..100).for_each(|n| ledger.enter(row(n)));
    (0..50).for_each(|n| {
        ledger.energy(EnergyRow::of(&row(n), Used { gpu_ns: Some(n), gpu_hours_pico: 3, ..Used::default() }));
    });
    assert!(ledger.shutdown(LONG));
    place
}

/// Exchanges and money of each month, as billed.
fn billed(place: &Place) -> Vec<(String, u64, i128)> {
    let mut months = std::collections::BTreeMap::<Month, (u64, i128)>::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |month, line| {
            let sum = months.entry(month).or_default();
            *sum = (sum.0 + line.sums.exchanges, sum.1 + line.sums.cost_pico);
            Ok(())
        })
        .unwrap();
    months.into_iter().map(|(month, (count, cost))| (month::name(month), count, cost)).collect()
}

#[track_caller]
fn well(place: &Place) {
    for verdict in verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, [], "{}", verdict.path.display());
    }
}

#[track_caller]
fn differs(place: &Place, in_what: &str) {
    let verdicts = verify(&place.ledger(), None).unwrap();
    let differences = verdicts.iter().flat_map(|verdict| &verdict.differences);
    let found: Vec<String> = differences.map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.contains(in_what)), "{in_what:?} is not in {found:#?}");
}

#[test]
fn closing_signs_sums_and_is_idempotent() {
    let place = with_october();
    well(&place);
    let early = close(&place.ledger(), october(), "ann", NOON_US).unwrap_err();
    assert!(early.message.contains("it can be closed from 2026-11-01T00:00:00Z on"), "{early}");
    let sign_off = close(&place.ledger(), october(), "ann", november_us()).unwrap();
    assert_eq!(place.names(), ["x-2026-10.db", "x-2026-10.json", "x.db", "x.db.lock"]);
    let text = std::fs::read_to_string(place.path("x-2026-10.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document, sign_off.document);
    let cost: i128 = (0..100).filter_map(|n| row(n).charge.cost()).map(i128::from).sum();
    let decimal = format!("{}.{:012}", cost / 1_000_000_000_000, cost % 1_000_000_000_000);
    assert_eq!(document["cost"]["USD"].as_str().unwrap(), decimal.trim_end_matches('0'));
    assert_eq!((&document["rows"], &document["exchanges"]), (&Value::from(100), &Value::from(100)));
    assert_eq!(document["unpriced_exchanges"], Value::from((0..100).filter(|n| n % 7 == 0).count()));
    assert_eq!(document["closed_by"], Value::from("ann"));
    assert_eq!(document["gpu_hours_cost_usd"], Value::from("0.00000000015"));
    for name in ["x-2026-10.db", "x-2026-10.json"] {
        assert!(std::fs::metadata(place.path(name)).unwrap().permissions().readonly(), "{name}");
    }
    well(&place);
    assert_eq!(close(&place.ledger(), october(), "bob", november_us() + DAY_US).unwrap(), sign_off);
}

#[test]
fn late_row_is_billed_in_open_month() {
    let place = with_october();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let before = std::fs::read(place.path("x-2026-10.db")).unwrap();
    let (ledger, _) = at(november_us(), &place, 0);
    // One that is new and one that October has; energy of an exchange that October has.
    [row(5), row(200)].into_iter().for_each(|row| ledger.enter(row));
    ledger.energy(EnergyRow::of(&row(70), Used { gpu_ns: Some(9), ..Used::default() }));
    assert!(ledger.shutdown(LONG));
    let cost = |numbers: &mut dyn Iterator<Item = u64>| -> i128 {
        numbers.filter_map(|n| row(n).charge.cost()).map(i128::from).sum()
    };
    assert_eq!(
        billed(&place),
        [
            ("2026-10".to_owned(), 100, cost(&mut (0..100))),
            ("2026-11".to_owned(), 1, cost(&mut std::iter::once(200)))
        ]
    );
    assert_eq!(std::fs::read(place.path("x-2026-10.db")).unwrap(), before, "a closed month does not change");
    well(&place);
}

/// Nothing in November names the rate but the line that the energy adds to.
#[test]
fn late_energy_leaves_next_month_closable() {
    let place = with_october();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let (ledger, _) = at(november_us(), &place, 0);
    ledger.energy(EnergyRow::of(&row(71), Used { gpu_ns: Some(9), ..Used::default() }));
    assert!(ledger.shutdown(LONG));
    well(&place);
    close(&place.ledger(), october() + 1, "ann", month::begin_us(october() + 2)).unwrap();
}

/// A file is readable for its owner and the owner's group only, whatever the umask.
#[test]
fn files_are_unreadable_for_other_users() {
    use std::os::unix::fs::PermissionsExt;
    let place = with_october();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let (ledger, _) = at(november_us(), &place, 0);
    let log = place.path("x.db-wal");
    let end = Instant::now() + LONG;
    while !log.exists() {
        assert!(Instant::now() < end, "{:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(5));
    }
    for name in ["x.db", "x.db-wal", "x-2026-10.db", "x-2026-10.json"] {
        let mode = std::fs::metadata(place.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0, "{name}: {mode:o}");
    }
    assert!(ledger.shutdown(LONG));
}

/// The proxy runs all the time: the month is closed beside it.
#[test]
fn month_is_closed_beside_the_writer() {
    let place = Place::new();
    let (ledger, hands) = at(NOON_US, &place, 0);
    let enter = |row: Row| {
        let before = ledger.status().rows_total;
        ledger.enter(row);
        let end = Instant::now() + LONG;
        while ledger.status().rows_total == before {
            assert!(Instant::now() < end, "{:?}", ledger.status());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    enter(row(0));
    let held = close(&place.ledger(), october(), "ann", november_us()).unwrap_err();
    assert!(held.message.contains("try again in a minute"), "{held}");
    hands.store(november_us(), Ordering::SeqCst);
    enter(Row { ended_us: november_us(), ..row(1) });
    enter(row(2)); // late, so that the writer has October open
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    enter(row(3)); // later still
    assert!(ledger.shutdown(LONG));
    let months: Vec<_> = billed(&place).into_iter().map(|(name, count, _)| (name, count)).collect();
    assert_eq!(months, [("2026-10".to_owned(), 2), ("2026-11".to_owned(), 2)]);
    well(&place);
}

#[test]
fn closed_months_form_a_chain() {
    let place = with_october();
    let (ledger, hands) = at(november_us(), &place, 0);
    ledger.enter(Row { ended_us: november_us(), ..row(300) });
    assert!(ledger.shutdown(LONG));
    let december = month::begin_us(october() + 2);
    hands.store(december, Ordering::SeqCst);
    let early = close(&place.ledger(), october() + 1, "ann", december).unwrap_err();
    assert!(early.message.contains("2026-10 is not closed"), "{early}");
    let first = close(&place.ledger(), october(), "ann", december).unwrap();
    let second = close(&place.ledger(), october() + 1, "ann", december).unwrap();
    assert_eq!(second.document["previous_digest"], first.document["digest"]);
    assert_eq!(first.document["previous_digest"], Value::Null);
    well(&place);
    std::fs::remove_file(place.path("x-2026-10.db")).unwrap();
    differs(&place, "the month closed before it is gone");
}

#[test]
fn absent_month_is_reported() {
    let place = with_october();
    let (ledger, _) = at(november_us(), &place, 0);
    ledger.enter(Row { ended_us: november_us(), ..row(1_000) });
    assert!(ledger.shutdown(LONG));
    close(&place.ledger(), october(), "tester", november_us()).unwrap();
    well(&place);
    std::fs::remove_file(files::of_month(&place.ledger(), october())).unwrap();
    differs(&place, "it was signed off, and its file is gone");
    let only = verify(&place.ledger(), Some(october())).unwrap();
    assert_eq!((only.len(), only[0].differences.len()), (1, 1));
    assert!(verify(&place.ledger(), Some(october() + 1)).unwrap()[0].differences.is_empty());
}

/// Closed without it, November would differ from the October that is put back.
#[test]
fn month_after_an_absent_one_is_not_closed() {
    let place = with_october();
    let (ledger, _) = at(november_us(), &place, 0);
    ledger.enter(Row { ended_us: november_us(), ..row(1_000) });
    assert!(ledger.shutdown(LONG));
    let december = month::begin_us(october() + 2);
    close(&place.ledger(), october(), "ann", december).unwrap();
    let (there, away) = (place.path("x-2026-10.db"), place.path("away"));
    std::fs::rename(&there, &away).unwrap();
    let refused = close(&place.ledger(), october() + 1, "ann", december).unwrap_err();
    assert!(refused.message.contains("the file of 2026-10 is gone (it was signed off)"), "{refused}");
    std::fs::rename(&away, &there).unwrap();
    close(&place.ledger(), october() + 1, "ann", december).unwrap();
    well(&place);
}

#[test]
fn late_correction_is_billed_in_open_month() {
    let place = with_october();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let price::Charge::Priced { rate: new, .. } = rate(50) else { unreachable!() };
    let mut line =
        DailyTotal { key: TotalKey::of_row(&row(1), crate::Class::Correction), sums: Sums::default() };
    line.key.rate = Some(new.id);
    line.sums.cost_pico = -5;
    let correction = Correction {
        id: meter::ExchangeId([9; 16]),
        made_us: november_us(),
        exchange: row(1).id,
        line,
        ended_us: row(1).ended_us,
    };
    let amendment = Amendment {
        what: "repriced",
        who: "ann",
        detail: "{}",
        at_us: november_us(),
        rates: &[&new],
        corrections: &[correction],
    };
    assert_eq!(LedgerFolder::open(&place.ledger()).amend(&amendment).unwrap(), 1);
    assert_eq!(LedgerFolder::open(&place.ledger()).amend(&amendment).unwrap(), 0, "once");
    assert_eq!(billed(&place)[1], ("2026-11".to_owned(), 0, -5));
    well(&place);
}

/// A hand that knows SQL but not the row checksums; one that knows both; one that changes what was signed.
#[test]
fn verify_reports_any_change_of_closed_month() {
    for (sql, difference) in [
        ("UPDATE exchange SET cost_pico = cost_pico + 1 WHERE seq = 2", "exchange"),
        ("DELETE FROM exchange WHERE seq = 100", "exchange"),
        ("UPDATE line SET exchanges = exchanges + 1", "line"),
        ("DELETE FROM energy WHERE seq = 3", "energy"),
        ("UPDATE rate SET input = 2", "rate"),
        ("DELETE FROM act", "act"),
        ("UPDATE fact SET value = 5 WHERE name = 'closed_us'", "fact"),
        ("UPDATE seal SET entered = entered + 1 WHERE name = 'gap'", "seal"),
    ] {
        let place = with_october();
        close(&place.ledger(), october(), "ann", november_us()).unwrap();
        let path = place.path("x-2026-10.db");
        super::read_only(&path, false).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        connection.close().unwrap();
        differs(&place, difference);
    }
    let place = with_october();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let signed = files::sign_off(&place.ledger(), october());
    super::read_only(&signed, false).unwrap();
    let text = std::fs::read_to_string(&signed).unwrap().replace("\"ann\"", "\"eve\"");
    std::fs::write(&signed, text).unwrap();
    differs(&place, "closed_by");
}

/// One row changed: it is named first, then the one line that its change makes wrong, in money.
#[test]
fn changed_row_is_reported_before_its_totals() {
    let place = with_october();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let path = place.path("x-2026-10.db");
    super::read_only(&path, false).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE exchange SET cost_pico = cost_pico + 1500000000000 WHERE seq = 2";
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    let verdict = verify(&place.ledger(), Some(october())).unwrap().remove(0);
    let differences: Vec<_> = verdict.differences.iter().map(ToString::to_string).collect();
    let [first, line] = differences.as_slice() else { panic!("{differences:#?}") };
    let (id, tenant) = (row(1).id, row(1).tenant);
    let named =
        format!("a row of the table exchange is not as it was written (seq 2, id {id}, tenant {tenant:?}");
    assert!(first.starts_with(&named), "{first}");
    assert!(line.starts_with("so the daily total of class usage of 2026-10-"), "{line}");
    let (stored, computed) = line.split_once("; its rows sum to ").expect("two sums");
    let usd = |text: &str| -> f64 {
        let (before, _) = text.split_once(" USD").expect("a currency");
        before.rsplit(' ').next().unwrap().parse().expect("units of it")
    };
    assert!((usd(computed) - usd(stored) - 1.5).abs() < 1e-9, "{line}");
    assert_eq!(verdict.rows, 100, "all were read");
}

/// A new kind of difference does not compile until [`super::prevents_closing`] decides about it.
#[test]
fn closing_depends_on_the_kind_of_difference() {
    let sign_off = |problem: &str| Difference::SignOff { path: "x.json".into(), problem: problem.into() };
    // The text of damage may be that of any other kind.
    let sign_offs = "the sign-off x.json is not JSON";
    for (difference, text, prevents) in [
        (sign_off("is not JSON"), sign_offs, false),
        (Difference::Contents(sign_offs.into()), sign_offs, true),
        (Difference::Duplicate("twice".into()), "twice", true),
        (
            Difference::Absent("it was signed off"),
            "it was signed off, and its file is gone: put it back from a copy",
            true,
        ),
        (Difference::Previous(Some(october())), "it was closed after a different state of 2026-10", true),
        (Difference::Previous(None), "the month closed before it is gone", true),
    ] {
        assert_eq!((&*difference.to_string(), super::prevents_closing(&difference)), (text, prevents));
    }
    let changed = Difference::Digest { computed: [0xa5; 32], closed: [0x0f; 32] };
    let (now, then) = ("a5".repeat(32), "0f".repeat(32));
    assert_eq!(changed.to_string(), format!("its digest is {now} and was {then} when it was closed"));
    assert!(super::prevents_closing(&changed));
}

/// Lines whose rows say something else, with row checksums and table digests that are right: only summing again tells.
#[test]
fn totals_are_compared_with_their_rows() {
    let place = with_october();
    let mut file = crate::file::File::open(&place.ledger()).unwrap();
    let mut txn = crate::txn::Txn::begin(&mut file).unwrap();
    let mut line = DailyTotal { key: TotalKey::of_row(&row(1), crate::Class::Usage), sums: Sums::default() };
    line.sums.cost_pico = 1;
    txn.total(&line.key, &line.sums);
    txn.commit().unwrap();
    drop(file);
    differs(&place, "its rows sum to");
    let refused = close(&place.ledger(), october(), "ann", november_us()).unwrap_err();
    assert!(refused.message.contains("does not verify"), "{refused}");
}

/// Lets retention read the clock for the first time, when it cannot trust it yet.
#[track_caller]
fn read_clock(place: &Place, now_us: i64) {
    assert_eq!(
        retain::step(&place.ledger(), &crate::Calendar::default(), 20, &|_| true, "test", now_us).unwrap(),
        Next::Nothing
    );
}

#[test]
fn retention_deletes_rows_and_keeps_totals() {
    let place = with_october();
    let sign_off = close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let before = billed(&place);
    let length = files::length(&place.path("x-2026-10.db"));
    let kept = |place: &Place| {
        let mut count = 0;
        let store = Store::open_read(&place.ledger()).unwrap();
        store
            .rows(&Range::ALL, &mut |_, _, _| {
                count += 1;
                Ok(())
            })
            .unwrap();
        count
    };
    // Ten days into November rows of twenty days are kept, forty days in they are not, once the clock has
    // run on for a day.
    for (days, rows) in [(10, 100), (39, 100), (40, 0)] {
        let (ledger, _) = at(november_us() + days * DAY_US, &place, 20);
        let end = Instant::now() + LONG;
        while rows == 0 && files::length(&place.path("x-2026-10.db")) == length {
            assert!(Instant::now() < end, "{:?}", ledger.status());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(ledger.shutdown(LONG));
        assert_eq!(kept(&place), rows, "after {days} days");
        if rows > 0 {
            read_clock(&place, november_us() + days * DAY_US);
        }
    }
    assert_eq!(billed(&place)[0], before[0]);
    assert!(std::fs::metadata(place.path("x-2026-10.db")).unwrap().permissions().readonly());
    well(&place);
    assert_eq!(close(&place.ledger(), october(), "eve", november_us() + 50 * DAY_US).unwrap(), sign_off);
}

/// October is nothing that can be read: what it may have something of is an error that names it, and all
/// else is as if nothing were.
#[test]
fn unreadable_month_deletes_no_other() {
    let place = with_october();
    let (ledger, _) = at(november_us(), &place, 0);
    (0..10).for_each(|n| ledger.enter(Row { ended_us: november_us(), ..row(300 + n) }));
    assert!(ledger.shutdown(LONG));
    let quarantine_past = place.path("x-2026-10.db");
    let whole = std::fs::read(&quarantine_past).unwrap();
    let ranges = [
        (Range::ALL, false),
        (Range { since_us: month::begin_us(october()), until_us: NOON_US }, false),
        // What October had to bill of September is not known either.
        (Range { since_us: i64::MIN, until_us: month::begin_us(october()) }, false),
        (Range { since_us: month::begin_us(october() + 1), until_us: i64::MAX }, true),
    ];
    let shorter = whole[..whole.len() - 2 * 4_096].to_vec();
    for bytes in [vec![0xA5; whole.len()], Vec::new(), shorter] {
        std::fs::write(&quarantine_past, &bytes).unwrap();
        let store = Store::open_read(&place.ledger()).unwrap();
        for (range, well) in &ranges {
            let mut count = 0;
            let lines = store.daily_totals(range, &mut |_, line| {
                count += line.sums.exchanges;
                Ok(())
            });
            let message = lines.map_err(|error| error.to_string());
            if *well {
                assert_eq!((message, count), (Ok(()), 10), "{} bytes, {range:?}", bytes.len());
                assert!(store.rows(range, &mut |_, _, _| Ok(())).is_ok());
                assert!(store.devices(range).is_ok() && store.gaps(range).is_ok());
                assert!(!store.rates().unwrap().is_empty());
            } else {
                let message = message.unwrap_err();
                assert!(message.contains("x-2026-10.db"), "{message}");
            }
        }
    }
    std::fs::write(&quarantine_past, vec![0xA5; whole.len()]).unwrap();
    let message = Store::open_read(&place.ledger()).unwrap().gaps(&Range::ALL).unwrap_err().to_string();
    assert!(message.contains("restore it from a backup"), "{message}");
}

/// Old rows that another store has yet to get stay, and go once it has them.
#[test]
fn unshipped_rows_are_kept() {
    let place = with_october();
    let month = place.path("x-2026-10.db");
    let later = november_us() + 40 * DAY_US;
    assert!(at(later - DAY_US, &place, 0).0.shutdown(LONG));
    read_clock(&place, later - DAY_US);
    let (asked, asks) = std::sync::mpsc::channel();
    let never: crate::MayForget = Arc::new(move |file| {
        asked.send(file.to_owned()).unwrap();
        false
    });
    let plan = Plan { keep_days: 20, may_forget: Some(never), ..Plan::new(place.ledger()) };
    let ledger = start(Plan { clock: Arc::new(move || later), ..plan });
    assert_eq!(asks.recv_timeout(LONG).unwrap(), month);
    assert!(ledger.shutdown(LONG));
    let rows = || {
        let file = crate::file::File::open_read(&month).unwrap();
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            file.connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        (count("exchange"), count("energy"))
    };
    let step = |may: bool| {
        retain::step(
            &place.ledger(),
            &crate::Calendar::default(),
            20,
            &|file| file == month && may,
            "test",
            later,
        )
        .unwrap()
    };
    assert_eq!((step(false), rows()), (Next::Wait, (100, 50)));
    assert_eq!((step(true), rows()), (Next::Step, (0, 0)));
    while step(true) == Next::Step {}
    assert_eq!(step(false), Next::Nothing, "there is nothing left to ask about");
    well(&place);
}

/// September cannot be read: that is an error, and October's rows are still deleted.
#[test]
fn unreadable_month_keeps_no_other() {
    let place = with_october();
    let later = november_us() + 40 * DAY_US;
    assert!(at(later - DAY_US, &place, 0).0.shutdown(LONG));
    read_clock(&place, later - DAY_US);
    std::fs::write(place.path("x-2026-09.db"), vec![0xA5; 8_192]).unwrap();
    let step = || retain::step(&place.ledger(), &crate::Calendar::default(), 20, &|_| true, "test", later);
    let mut steps = 0;
    let error = loop {
        match step() {
            Ok(Next::Step) => steps += 1,
            other => break other.unwrap_err(),
        }
    };
    assert!(steps > 0 && error.message.contains("x-2026-09.db"), "{steps} {error}");
    let file = crate::file::File::open_read(&place.path("x-2026-10.db")).unwrap();
    let rows: i64 = file.connection.query_row("SELECT count(*) FROM exchange", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

/// The clock jumps by seventy years and is put right within a day; the second time it stays.
#[test]
fn clock_jump_deletes_nothing() {
    let place = with_october();
    let (soon, wrong) = (november_us() + DAY_US, november_us() + 70 * 365 * DAY_US);
    assert!(at(soon, &place, 0).0.shutdown(LONG));
    let rows = || {
        let file = crate::file::File::open_read(&place.path("x-2026-10.db")).unwrap();
        file.connection.query_row("SELECT count(*) FROM exchange", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let hour = DAY_US / 24;
    let hours = |from: i64, count: i64| (0..count).map(move |n| from + n * hour);
    for now in hours(soon, 30).chain(hours(wrong, 24)).chain(hours(soon + 54 * hour, 3)).chain([wrong]) {
        read_clock(&place, now);
    }
    assert_eq!(rows(), 100);
    hours(wrong, 24).for_each(|now| read_clock(&place, now));
    let believed =
        retain::step(&place.ledger(), &crate::Calendar::default(), 20, &|_| true, "test", wrong + 24 * hour)
            .unwrap();
    assert_eq!((believed, rows()), (Next::Step, 0));
}

/// The proxy ran while the clock was at 2099; a correction of now is billed now.
#[test]
fn nothing_is_billed_in_a_future_month() {
    let place = with_october();
    assert!(at(november_us() + 70 * 365 * DAY_US, &place, 0).0.shutdown(LONG));
    let act = Amendment {
        what: "noted",
        who: "ann",
        detail: "{}",
        at_us: november_us(),
        rates: &[],
        corrections: &[],
    };
    let lock = crate::lock::Lock::take(&place.ledger()).unwrap();
    let error = LedgerFolder::open(&place.ledger()).amend(&act).unwrap_err();
    assert!(error.message.contains("the clock was or is wrong"), "{error}");
    drop(lock);
    for acts in 1..=2 {
        LedgerFolder::open(&place.ledger()).amend(&act).unwrap();
        let file = crate::file::File::open_read(&place.path("x-2026-11.db")).unwrap();
        let sql = "SELECT count(*) FROM act WHERE what = 'noted'";
        assert_eq!(file.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), acts);
    }
    well(&place);
}
