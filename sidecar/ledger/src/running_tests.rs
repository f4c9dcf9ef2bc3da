//! The ledger at work, from outside: what is entered is there, once, whatever happens meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use super::{Ledger, Plan, start};
use crate::GpuSums;
use crate::continuity::ENTRY_DELAY_US;
use crate::source::{DAY_US, DeviceTotal, Gap, Range, Share, Source, Used};
use crate::testing::{NOON_US, Place, row};
use crate::{DailyTotal, EnergyRow, Fault, Row, Store, month};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// A clock that stands still until it is set.
#[derive(Clone)]
struct Hands(Arc<AtomicI64>);

impl Hands {
    fn at(us: i64) -> Self {
        Self(Arc::new(AtomicI64::new(us)))
    }

    fn set(&self, us: i64) {
        self.0.store(us, Ordering::SeqCst);
    }
}

fn begin(place: &Place, hands: &Hands) -> Ledger {
    let clock = hands.0.clone();
    start(Plan { clock: Arc::new(move || clock.load(Ordering::SeqCst)), ..Plan::new(place.ledger()) })
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < end, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn acknowledged(ledger: &Ledger, rows: u64) {
    until("all is acknowledged", || {
        let status = ledger.status();
        status.rows_total >= rows && status.queued_rows == 0
    });
}

fn lines(place: &Place) -> Vec<DailyTotal> {
    let mut lines = Vec::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |_, line| {
            lines.push(line.clone());
            Ok(())
        })
        .unwrap();
    lines
}

fn rows(place: &Place) -> Vec<(Row, Option<Used>)> {
    let mut rows = Vec::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .rows(&Range::ALL, &mut |_, row, used| {
            rows.push((row.clone(), used.copied()));
            Ok(())
        })
        .unwrap();
    rows
}

fn gaps(place: &Place) -> Vec<Gap> {
    Store::open_read(&place.ledger()).unwrap().gaps(&Range::ALL).unwrap()
}

/// Exchanges, all tokens, money.
fn sums(lines: &[DailyTotal]) -> (u64, u64, i128) {
    (
        lines.iter().map(|line| line.sums.exchanges).sum(),
        lines.iter().map(|line| line.sums.tokens.iter().sum::<u64>()).sum(),
        lines.iter().map(|line| line.sums.cost_pico).sum(),
    )
}

fn sums_of(rows: impl IntoIterator<Item = Row>) -> (u64, u64, i128) {
    rows.into_iter().fold((0, 0, 0), |(count, tokens, cost), row| {
        let more = row.tokens.by_type.iter().sum::<u64>();
        (count + 1, tokens + more, cost + i128::from(row.charge.cost().unwrap_or(0)))
    })
}

#[test]
fn entered_rows_are_read_and_summed() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    (0..1_000).for_each(|n| ledger.enter(row(n)));
    acknowledged(&ledger, 1_000);
    // Read while it is being written.
    let read: Vec<Row> = rows(&place).into_iter().map(|(row, _)| row).collect();
    assert_eq!(read, (0..1_000).map(row).collect::<Vec<_>>());
    assert_eq!(sums(&lines(&place)), sums_of((0..1_000).map(row)));
    assert!(ledger.shutdown(LONG));
    assert_eq!(place.names(), ["x.db", "x.db.lock"], "nothing is left beside it");
    assert_eq!(sums(&lines(&place)), sums_of((0..1_000).map(row)));
    assert_eq!(gaps(&place), [], "an orderly end leaves nothing to say");
}

#[test]
fn repeated_row_changes_nothing() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    for n in [1, 2, 2, 1, 3] {
        ledger.enter(row(n));
    }
    acknowledged(&ledger, 5);
    assert!(ledger.shutdown(LONG));
    let ledger = begin(&place, &Hands::at(NOON_US));
    (1..5).for_each(|n| ledger.enter(row(n)));
    acknowledged(&ledger, 4);
    assert!(ledger.shutdown(LONG));
    assert_eq!(sums(&lines(&place)), sums_of((1..5).map(row)));
}

/// Before its exchange, after it, twice, and for one that was never there.
#[test]
fn energy_joins_whenever_it_comes() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    let used = |n: u64| Used {
        energy_nj: Some(n * 1_000_000_007),
        gpu_ns: n.is_multiple_of(2).then_some(n * 5),
        gpu_hours_pico: i64::try_from(n).unwrap() * 3_000_000_000_000,
        gpu_energy_pico: -7,
    };
    for n in [0, 1] {
        ledger.energy(EnergyRow::of(&row(n), used(n)));
    }
    acknowledged(&ledger, 0);
    (0..20).for_each(|n| ledger.enter(row(n)));
    (0..20).for_each(|n| ledger.energy(EnergyRow::of(&row(n), used(n))));
    ledger.energy(EnergyRow::of(&row(99), used(99)));
    acknowledged(&ledger, 20);
    assert!(ledger.shutdown(LONG));
    let all = (0..20).chain([99]);
    let lines = lines(&place);
    assert_eq!(lines.iter().map(|line| line.sums.energy_exchanges).sum::<u64>(), 21);
    assert_eq!(
        lines
            .iter()
            .map(|line| (
                line.sums.gpu.energy_nj,
                line.sums.gpu.gpu_ns,
                line.sums.gpu.gpu_hours_pico,
                line.sums.gpu.gpu_energy_pico
            ))
            .fold((0, 0, 0, 0), |sum, line| (sum.0 + line.0, sum.1 + line.1, sum.2 + line.2, sum.3 + line.3)),
        all.map(used).fold((0, 0, 0, 0), |sum, used| (
            sum.0 + i128::from(used.energy_nj.unwrap()),
            sum.1 + i128::from(used.gpu_ns.unwrap_or(0)),
            sum.2 + i128::from(used.gpu_hours_pico),
            sum.3 + i128::from(used.gpu_energy_pico),
        ))
    );
    for (row, read) in rows(&place) {
        let n = u64::try_from(row.ended_us - NOON_US).unwrap();
        assert_eq!(read, Some(used(n)), "{n}");
    }
}

#[test]
fn idle_shares_add_up() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    let line = |day, n: i128| DeviceTotal {
        day,
        hw_id: "GPU-0".into(),
        share: Share::Idle,
        sums: GpuSums { energy_nj: n << 70, gpu_ns: -n, gpu_hours_pico: 0, gpu_energy_pico: n },
    };
    let day = month::day(NOON_US);
    ledger.device(vec![line(day, 1), line(day, 2)]);
    acknowledged(&ledger, 0);
    ledger.device(vec![line(day, 4), line(day + 1, 8)]);
    assert!(ledger.shutdown(LONG));
    let mut read = Store::open_read(&place.ledger()).unwrap().devices(&Range::ALL).unwrap();
    read.sort_by_key(|line| line.day);
    assert_eq!(read, [line(day, 7), line(day + 1, 8)]);
}

#[test]
fn acts_are_kept_in_their_order() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    ledger.act(NOON_US, "price_book", "{\"hash\":\"b00c\"}".to_owned());
    assert!(ledger.shutdown(LONG));
    let connection = rusqlite::Connection::open(place.ledger()).unwrap();
    let mut statement = connection.prepare("SELECT what, detail FROM act ORDER BY seq").unwrap();
    let acts: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let expected = [("opened", "{}"), ("price_book", "{\"hash\":\"b00c\"}")];
    assert_eq!(acts, expected.map(|(what, detail)| (what.to_owned(), detail.to_owned())));
}

#[test]
fn after_a_crash_a_gap_says_since_when() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let ledger = begin(&place, &hands);
    (0..10).for_each(|n| ledger.enter(row(n)));
    acknowledged(&ledger, 10);
    let crashed = place.copy();
    ledger.abandon();
    let hands = Hands::at(NOON_US + DAY_US);
    let ledger = begin(&crashed, &hands);
    until("it is up", || ledger.status().up);
    assert_eq!(ledger.status().gaps_total, 1);
    ledger.enter(row(10));
    assert!(ledger.shutdown(LONG));
    let found = gaps(&crashed);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].from_us, found[0].until_us, &*found[0].why, found[0].lost_rows, found[0].totals_kept),
        (NOON_US - ENTRY_DELAY_US, NOON_US + DAY_US, "crash", None, false)
    );
    assert_eq!(sums(&lines(&crashed)), sums_of((0..11).map(row)));
}

#[test]
fn ended_month_gets_its_own_file() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let november = month::begin_us(month::of(NOON_US) + 1);
    let later = |n: u64| Row { ended_us: november + 5, ..row(n) };
    let ledger = begin(&place, &hands);
    (0..10).for_each(|n| ledger.enter(row(n)));
    acknowledged(&ledger, 10);
    hands.set(november + 10);
    // One of each month: the old one is late.
    ledger.enter(later(100));
    ledger.enter(row(10));
    ledger.energy(EnergyRow::of(&row(3), Used { gpu_ns: Some(5), ..Used::default() }));
    acknowledged(&ledger, 12);
    assert!(ledger.shutdown(LONG));
    assert_eq!(place.names(), ["x-2026-10.db", "x.db", "x.db.lock"]);
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut by_month = std::collections::BTreeMap::<_, Vec<DailyTotal>>::new();
    store
        .daily_totals(&Range::ALL, &mut |month, line| {
            by_month.entry(month::name(month)).or_default().push(line.clone());
            Ok(())
        })
        .unwrap();
    assert_eq!(sums(&by_month["2026-10"]), sums_of((0..11).map(row)));
    assert_eq!(sums(&by_month["2026-11"]), sums_of([later(100)]));
    assert_eq!(by_month["2026-10"].iter().map(|line| line.sums.gpu.gpu_ns).sum::<i128>(), 5);
}

/// A reader keeps the month's file where it is; the new month's rows are written all the same, and once
/// the reader is gone everything has its name.
#[test]
fn month_being_read_is_moved_later() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let november = month::begin_us(month::of(NOON_US) + 1);
    let later = |n: u64| Row { ended_us: november + 5, ..row(n) };
    let ledger = begin(&place, &hands);
    (0..10).for_each(|n| ledger.enter(row(n)));
    acknowledged(&ledger, 10);
    let reader = Store::open_read(&place.ledger()).unwrap();
    hands.set(november + 10);
    ledger.enter(later(100));
    acknowledged(&ledger, 11);
    assert!(place.names().contains(&"x-2026-11.db".to_owned()), "{:?}", place.names());
    assert_eq!(sums(&lines(&place)), sums_of((0..10).map(row).chain([later(100)])));
    drop(reader);
    assert!(ledger.shutdown(LONG));
    let ledger = begin(&place, &hands);
    ledger.enter(later(101));
    acknowledged(&ledger, 1);
    assert!(ledger.shutdown(LONG));
    assert_eq!(place.names(), ["x-2026-10.db", "x.db", "x.db.lock"]);
    assert_eq!(sums(&lines(&place)), sums_of((0..10).map(row).chain([later(100), later(101)])));
    assert_eq!(gaps(&place), []);
}

#[test]
fn row_of_earlier_month_goes_to_its_file() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let ledger = begin(&place, &hands);
    ledger.enter(row(0));
    acknowledged(&ledger, 1);
    let back = month::begin_us(month::of(NOON_US) - 3);
    hands.set(back);
    ledger.enter(Row { ended_us: back, ..row(1) });
    acknowledged(&ledger, 2);
    hands.set(NOON_US);
    ledger.enter(row(2));
    assert!(ledger.shutdown(LONG));
    assert_eq!(place.names(), ["x-2026-07.db", "x.db", "x.db.lock"]);
    assert_eq!(sums(&lines(&place)), sums_of((0..3).map(row)));
}

#[test]
fn second_writer_is_refused_and_keeps_trying() {
    let place = Place::new();
    let first = begin(&place, &Hands::at(NOON_US));
    until("the first is up", || first.status().up);
    let second = begin(&place, &Hands::at(NOON_US));
    second.enter(row(1));
    until("the second reports why", || {
        let status = second.status();
        !status.up && status.fault_message.is_some_and(|message| message.contains("another process"))
    });
    assert!(second.status().faults_total[Fault::Locked as usize] > 0);
    assert!(first.shutdown(LONG));
    acknowledged(&second, 1);
    assert!(second.shutdown(LONG));
    assert_eq!(sums(&lines(&place)), sums_of([row(1)]));
}

#[test]
fn absent_directory_is_waited_for_not_made() {
    let place = Place::new();
    let path = place.path("later").join("x.db");
    let ledger = start(Plan::new(&path));
    ledger.enter(row(1));
    until("the missing directory is reported", || ledger.status().fault_message.is_some());
    assert!(!place.path("later").exists(), "a mount may be missing, under which nothing should be written");
    std::fs::create_dir(place.path("later")).unwrap();
    acknowledged(&ledger, 1);
    assert!(ledger.status().up && ledger.status().fault_message.is_none());
    assert!(ledger.shutdown(LONG));
}

#[test]
fn removed_file_is_noticed_before_next_acknowledgement() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    ledger.enter(row(1));
    acknowledged(&ledger, 1);
    for name in ["x.db", "x.db-wal", "x.db-shm"] {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    ledger.enter(row(2));
    acknowledged(&ledger, 2);
    assert!(ledger.shutdown(LONG));
    assert_eq!(sums(&lines(&place)), sums_of([row(2)]), "in the file that has the name now");
    let found: Vec<_> = gaps(&place).into_iter().map(|gap| (gap.why, month::of(gap.from_us))).collect();
    assert_eq!(found, [("replaced".into(), month::of(NOON_US))], "and has a gap for the former rows");
}

#[test]
fn foreign_file_is_not_overwritten() {
    for (what, content, refused) in [
        ("empty", Vec::new(), false),
        ("text", b"these are notes, and nothing else\n".repeat(100), false),
        ("zeros", vec![0; 8192], false),
        ("another program's", foreign(), true),
        ("newer", newer(), true),
    ] {
        let place = Place::new();
        std::fs::write(place.ledger(), &content).unwrap();
        let ledger = begin(&place, &Hands::at(NOON_US));
        ledger.enter(row(1));
        if refused {
            until(what, || ledger.status().fault_message.is_some());
            assert!(!ledger.shutdown(Duration::ZERO), "{what}");
            assert_eq!(ledger.status().lost_rows_total, 1, "{what}");
            assert_eq!(std::fs::read(place.ledger()).unwrap(), content, "{what}: untouched");
        } else {
            acknowledged(&ledger, 1);
            assert_eq!((ledger.status().quarantined_total, ledger.status().gaps_total), (1, 1), "{what}");
            assert!(ledger.shutdown(LONG));
            let quarantined = place.path("x.db.corrupt-2026-10-15T12-00-00Z");
            assert_eq!(std::fs::read(quarantined).unwrap(), content, "{what}: kept");
            assert_eq!(&*gaps(&place)[0].why, "corrupt", "{what}");
            assert_eq!(sums(&lines(&place)), sums_of([row(1)]), "{what}");
        }
    }
}

fn made(sql: &str) -> Vec<u8> {
    let place = Place::new();
    let connection = rusqlite::Connection::open(place.ledger()).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    std::fs::read(place.ledger()).unwrap()
}

fn foreign() -> Vec<u8> {
    made("CREATE TABLE notes (text)")
}

fn newer() -> Vec<u8> {
    made(&format!(
        "PRAGMA application_id = {}; PRAGMA user_version = 99; CREATE TABLE t (x)",
        crate::schema::APPLICATION
    ))
}

/// A reader that never goes away: the next month's file is the open one where it is, also for a process
/// that starts then, and a third gives it its name.
#[test]
fn month_begun_beside_reader_stays_one_file() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let november = month::begin_us(month::of(NOON_US) + 1);
    let later = |n: u64| Row { ended_us: november + 5, ..row(n) };
    let ledger = begin(&place, &hands);
    ledger.enter(row(0));
    acknowledged(&ledger, 1);
    let reader = Store::open_read(&place.ledger()).unwrap();
    hands.set(november + 10);
    ledger.enter(later(1));
    acknowledged(&ledger, 2);
    assert!(ledger.shutdown(LONG));
    drop(reader);
    // October can be moved now; November, which is read, cannot.
    let reader = Store::open_read(&place.ledger()).unwrap();
    let path = place.path("x-2026-10.db");
    let ledger = begin(&place, &hands);
    ledger.enter(later(2));
    acknowledged(&ledger, 1);
    assert!(ledger.shutdown(LONG));
    drop(reader);
    let ledger = begin(&place, &hands);
    ledger.enter(later(3));
    acknowledged(&ledger, 1);
    assert!(ledger.shutdown(LONG));
    assert!(path.exists());
    assert_eq!(place.names(), ["x-2026-10.db", "x.db", "x.db.lock"]);
    assert_eq!(sums(&lines(&place)), sums_of([row(0)].into_iter().chain((1..4).map(later))));
    assert_eq!(gaps(&place), []);
}

/// Somebody who reads an old state for hours does not keep the ledger from being opened.
#[test]
fn reader_of_old_snapshot_blocks_nothing() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let ledger = begin(&place, &hands);
    ledger.enter(row(0));
    acknowledged(&ledger, 1);
    let reader = rusqlite::Connection::open(place.ledger()).unwrap();
    let old = reader.unchecked_transaction().unwrap();
    let count = |sql: &str| old.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM exchange"), 1);
    ledger.enter(row(1));
    acknowledged(&ledger, 2);
    assert!(ledger.shutdown(LONG));
    let ledger = begin(&place, &hands);
    ledger.enter(row(2));
    acknowledged(&ledger, 1);
    assert!(ledger.shutdown(LONG));
    assert_eq!(count("SELECT count(*) FROM exchange"), 1);
    drop(old);
    assert_eq!(sums(&lines(&place)), sums_of((0..3).map(row)));
}

/// Names longer than a row holds are cut, of the row and of what it used alike.
#[test]
fn long_names_are_cut_alike() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    let long = Row { tenant: "é".repeat(5_000).into(), ..row(1) };
    ledger.enter(long.clone());
    ledger.energy(EnergyRow::of(&long, Used { gpu_ns: Some(5), ..Used::default() }));
    assert!(ledger.shutdown(LONG));
    let lines = lines(&place);
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0].key.tenant.len(), lines[0].sums.exchanges, lines[0].sums.gpu.gpu_ns), (1_024, 1, 5));
}

#[test]
fn panicked_writer_restarts_and_leaves_gap() {
    let place = Place::new();
    let hands = Hands::at(NOON_US);
    let breaks = Arc::new(AtomicBool::new(false));
    let (now, armed) = (hands.0.clone(), Arc::clone(&breaks));
    let clock: crate::Clock = Arc::new(move || {
        assert!(!armed.swap(false, Ordering::SeqCst), "the clock breaks");
        now.load(Ordering::SeqCst)
    });
    let ledger = start(Plan { clock, ..Plan::new(place.ledger()) });
    ledger.enter(row(0));
    acknowledged(&ledger, 1);
    breaks.store(true, Ordering::SeqCst);
    ledger.enter(row(1));
    until("it broke", || ledger.status().lost_rows_total == 1);
    assert!(!ledger.status().up && ledger.status().fault_message.is_some());
    ledger.enter(row(2));
    acknowledged(&ledger, 2);
    until("it is well again", || ledger.status().up);
    // And what was lost before it came.
    ledger.lost(NOON_US + 7, 5);
    until("the gap is entered", || ledger.status().gaps_total == 3);
    assert!(ledger.shutdown(LONG));
    let mut found: Vec<_> = gaps(&place).into_iter().map(|gap| (gap.why, gap.lost_rows)).collect();
    found.sort();
    assert_eq!(found, [("crash".into(), None), ("lost".into(), Some(1)), ("lost".into(), Some(5))]);
    assert_eq!(sums(&lines(&place)), sums_of([row(0), row(2)]));
}

/// A client without a key can make the proxy fail thousands of times a second, each time for another model.
#[test]
fn anonymous_failures_beyond_a_rate_are_in_totals() {
    let place = Place::new();
    let ledger = begin(&place, &Hands::at(NOON_US));
    let failure = |n: u64| Row {
        tenant: meter::DEFAULT_TENANT.into(),
        principal: None,
        model: format!("model-{n}").into(),
        ending: "proxy_error".into(),
        status: 502,
        tokens: meter::Tokens::NONE,
        charge: price::Charge::Unpriced(price::Unpriced::Model),
        ..row(n)
    };
    (0..10_000).for_each(|n| ledger.enter(failure(n)));
    // With a tenant, with tokens, or answered: each has its row.
    let others = [
        Row { principal: Some("key-1".into()), ..failure(10_000) },
        Row { tenant: "acme".into(), ..failure(10_001) },
        Row { tokens: row(10_002).tokens, ..failure(10_002) },
        Row { status: 200, ..failure(10_003) },
    ];
    others.iter().for_each(|row| ledger.enter(row.clone()));
    assert!(ledger.shutdown(LONG));
    let status = ledger.status();
    let (rows, totals) = (status.rows_total, status.shed_rows_total);
    assert_eq!((rows + totals, status.lost_rows_total), (10_004, 0));
    // The test may last for more than a minute.
    assert!(rows < 1_000, "{rows} rows");
    let lines = lines(&place);
    assert!(lines.len() < 1_000, "{} totals", lines.len());
    assert_eq!(lines.iter().map(|line| line.sums.exchanges).sum::<u64>(), 10_004);
    let shed = lines.iter().filter(|line| line.key.class == crate::Class::Shed);
    assert_eq!(
        shed.map(|line| (&*line.key.model, line.sums.exchanges)).collect::<Vec<_>>(),
        [("_other", totals)]
    );
    assert_eq!(gaps(&place), []);
    for verdict in crate::verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, []);
    }
}
