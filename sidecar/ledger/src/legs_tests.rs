//! Legs and repetitions of a request, cache writes by lifetime, and files from before the ledger had columns for them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use meter::{Provenance, Role, TokenType};
use price::{Charge, Rate, Unpriced};
use rusqlite::Connection;

use crate::schema::downgrade;
use crate::source::{Range, Source, Used};
use crate::testing::{Contents, NOON_US, Place, rate, row, write_month};
use crate::{DailyTotal, EnergyRow, Plan, Row, Store, close, files, month, start, verify};

const LONG: Duration = Duration::from_secs(30);

/// Enters rows, each with the energy it used, if any.
fn enter(path: &Path, rows: &[(Row, Option<Used>)]) {
    let ledger = start(Plan { clock: Arc::new(|| NOON_US), ..Plan::new(path) });
    for (row, used) in rows {
        ledger.enter(row.clone());
        if let Some(used) = *used {
            ledger.energy(EnergyRow::of(row, used));
        }
    }
    assert!(ledger.shutdown(LONG));
}

fn rows(path: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    let store = Store::open_read(path).unwrap();
    store
        .rows(&Range::ALL, &mut |_, row, _| {
            rows.push(row.clone());
            Ok(())
        })
        .unwrap();
    rows
}

fn sum(path: &Path) -> DailyTotal {
    let mut sum: Option<DailyTotal> = None;
    let store = Store::open_read(path).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |_, line| {
            match &mut sum {
                Some(sum) => sum.sums.add(&line.sums),
                None => sum = Some(line.clone()),
            }
            Ok(())
        })
        .unwrap();
    sum.unwrap()
}

fn differences(path: &Path) -> Vec<String> {
    verify(path, None).unwrap().into_iter().flat_map(|verdict| verdict.differences).collect()
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn prefill(row: Row) -> Row {
    let charge = Charge::Unpriced(Unpriced::Leg);
    Row { role: Role::Prefill, request_id: Some("req-1".into()), charge, upstream: "prefill".into(), ..row }
}

/// The energies of [`Place::of_version_1`].
fn energy_of(n: u64) -> Option<Used> {
    let used = Used { gpu_ns: Some(n + 1), energy_nj: Some(10 * n), gpu_hours_pico: 3, gpu_energy_pico: 4 };
    n.is_multiple_of(2).then_some(used)
}

#[test]
fn file_of_version_1_is_read_unchanged() {
    let place = Place::of_version_1();
    assert_eq!(rows(&place.ledger()), (0..24).map(row).collect::<Vec<_>>());
    let found = sum(&place.ledger());
    let total = |of: fn(&Row) -> u64| (0..24).map(|n| of(&row(n))).sum::<u64>();
    assert_eq!(
        (found.sums.exchanges, found.sums.energy_exchanges),
        (24 + 2, 12),
        "two got a price by the repricing"
    );
    assert_eq!(
        found.sums.tokens[TokenType::Input as usize],
        total(|row| row.tokens.by_type[TokenType::Input as usize])
    );
    assert_eq!(
        found.sums.tokens[TokenType::Output as usize],
        total(|row| row.tokens.by_type[TokenType::Output as usize])
    );
    let used = |of: fn(Used) -> u64| (0..24).filter_map(energy_of).map(of).sum::<u64>();
    assert_eq!(found.sums.gpu.gpu_ns, used(|used| used.gpu_ns.unwrap()).into());
    assert_eq!(found.sums.gpu.energy_nj, used(|used| used.energy_nj.unwrap()).into());
    let cost: i64 = (0..24).filter_map(|n| row(n).charge.cost()).sum();
    assert_eq!(found.sums.cost_pico, i128::from(cost) + 317_999_990, "with the corrections");
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    assert_eq!(version(&place.ledger()), 1);
}

#[test]
fn file_of_version_1_takes_legs() {
    let place = Place::of_version_1();
    let before = sum(&place.ledger());
    let decode = Row {
        role: Role::Decode,
        request_id: Some("req-1".into()),
        upstream_attempts: 2,
        cached_excess: 1_945,
        ..row(1_002)
    };
    enter(&place.ledger(), &[(prefill(row(1_000)), None), (decode.clone(), None)]);
    assert_eq!(version(&place.ledger()), crate::columns::VERSION);
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    let found = rows(&place.ledger());
    assert_eq!(found[..24], (0..24).map(row).collect::<Vec<_>>());
    assert_eq!(found[24..], [prefill(row(1_000)), decode]);
    let after = sum(&place.ledger());
    assert_eq!(after.sums.exchanges, before.sums.exchanges + 1);
    assert_eq!(after.sums.cost_pico - before.sums.cost_pico, row(1_002).charge.cost().unwrap().into());
}

/// A provenance is stored as a word, so that a new one changes no file.
#[test]
fn file_of_version_1_takes_engine_counts() {
    let place = Place::of_version_1();
    let mut counted = row(1_000);
    counted.tokens.input_provenance = Provenance::Engine;
    counted.tokens.output_provenance = Provenance::Engine;
    enter(&place.ledger(), &[(counted.clone(), None)]);
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    let found = rows(&place.ledger());
    assert_eq!(found[..24], (0..24).map(row).collect::<Vec<_>>());
    assert_eq!(found[24..], [counted]);
    let connection = Connection::open(place.ledger()).unwrap();
    for exchanges in ["count(*) FROM exchanges", "sum(exchanges) FROM spend_daily"] {
        let text =
            format!("SELECT {exchanges} WHERE input_provenance = 'engine' AND output_provenance = 'engine'");
        assert_eq!(connection.query_row(&text, [], |row| row.get::<_, i64>(0)).unwrap(), 1, "{text}");
    }
}

/// Returns a row with cache writes of both lifetimes, and a price for each.
fn written(n: u64) -> Row {
    let Charge::Priced { rate, cost } = rate(1) else { panic!("it has a price") };
    let mut priced = Rate::clone(&rate);
    priced.per_token[TokenType::InputCacheWrite1h as usize] = Some(6_000_000);
    priced.id = priced.identify();
    let mut row = Row { charge: Charge::Priced { rate: Arc::new(priced), cost }, ..row(n) };
    row.tokens.by_type[TokenType::InputCacheWrite as usize] = 4;
    row.tokens.by_type[TokenType::InputCacheWrite1h as usize] = 8;
    row
}

#[test]
fn files_of_earlier_versions_take_cache_writes_of_one_hour() {
    let older = Place::of_version_1();
    let newer = Place::new();
    enter(&newer.ledger(), &(0..24).map(|n| (row(n), None)).collect::<Vec<_>>());
    downgrade(&Connection::open(newer.ledger()).unwrap(), 2);
    for (place, before) in [(&older, 1), (&newer, 2)] {
        assert_eq!(rows(&place.ledger()), (0..24).map(row).collect::<Vec<_>>(), "{before}");
        assert_eq!((differences(&place.ledger()), version(&place.ledger())), (Vec::new(), before));
        let sums = sum(&place.ledger()).sums;
        enter(&place.ledger(), &[(written(1_000), None)]);
        assert_eq!(version(&place.ledger()), crate::columns::VERSION);
        assert_eq!(differences(&place.ledger()), Vec::<String>::new());
        let found = rows(&place.ledger());
        assert_eq!(
            (&found[..24], &found[24..]),
            (&(0..24).map(row).collect::<Vec<_>>()[..], &[written(1_000)][..])
        );
        let after = sum(&place.ledger()).sums;
        let of = |kind: TokenType| after.tokens[kind as usize] - sums.tokens[kind as usize];
        assert_eq!([TokenType::InputCacheWrite, TokenType::InputCacheWrite1h].map(of), [4, 8]);
        let connection = Connection::open(place.ledger()).unwrap();
        let input = written(1_000).tokens.input();
        for (sql, expected) in [
            ("SELECT input_cache_write_1h FROM exchanges ORDER BY ended DESC LIMIT 1", 8),
            ("SELECT input_tokens FROM exchanges ORDER BY ended DESC LIMIT 1", input),
            ("SELECT sum(input_cache_write_1h) FROM spend_daily", 8),
            ("SELECT sum(input_tokens) FROM spend_daily", sums.tokens[0] + input),
            ("SELECT count(*) FROM prices WHERE input_cache_write_1h = '6.000000'", 1),
        ] {
            let number = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!(number.unsigned_abs(), expected, "{sql}");
        }
    }
}

/// The digest covers a column of a later version only where it has a value.
#[test]
fn closed_month_of_version_2_keeps_its_digest() {
    let place = Place::new();
    let month = month::of(NOON_US);
    let exchanges: Vec<_> = (0..24).map(|n| (month, row(n), None)).collect();
    let rates = [0, 1].map(|n| match rate(n) {
        Charge::Priced { rate, .. } => rate,
        Charge::Unpriced(_) => panic!("it has a price"),
    });
    write_month(
        &place.ledger(),
        month,
        false,
        &Contents { rates: &rates, rows: exchanges.iter().collect(), ..Contents::default() },
    );
    let after_us = month::begin_us(month + 1);
    let sign_off = close(&place.ledger(), month, "ann", after_us).unwrap();
    let file = files::of_month(&place.ledger(), month);
    set_read_only(&file, false);
    downgrade(&Connection::open(&file).unwrap(), 2);
    set_read_only(&file, true);
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    assert_eq!(close(&place.ledger(), month, "ann", after_us).unwrap(), sign_off);
    assert_eq!(version(&file), 2, "it is not written");
}

fn set_read_only(path: &Path, is_read_only: bool) {
    let mut permissions = std::fs::metadata(path).unwrap().permissions();
    permissions.set_readonly(is_read_only);
    std::fs::set_permissions(path, permissions).unwrap();
}

#[test]
fn prefill_leg_adds_only_gpu_use() {
    let (pair, one) = (Place::new(), Place::new());
    let used =
        |n| Some(Used { gpu_ns: Some(n), energy_nj: Some(10 * n), gpu_hours_pico: 3, gpu_energy_pico: 4 });
    enter(&pair.ledger(), &[(prefill(row(1)), used(5)), (Row { role: Role::Decode, ..row(2) }, used(7))]);
    enter(&one.ledger(), &[(row(2), used(7))]);
    let (pair_sum, one_sum) = (sum(&pair.ledger()), sum(&one.ledger()));
    assert_eq!(pair_sum.sums.exchanges, 1);
    assert_eq!(
        (pair_sum.sums.tokens, pair_sum.sums.cost_pico),
        (one_sum.sums.tokens, one_sum.sums.cost_pico)
    );
    assert_eq!(pair_sum.sums.energy_exchanges, 1);
    assert_eq!((pair_sum.sums.gpu.gpu_ns, pair_sum.sums.gpu.energy_nj), (12, 120));
    assert_eq!((pair_sum.sums.gpu.gpu_hours_pico, pair_sum.sums.gpu.gpu_energy_pico), (6, 8));
    assert_eq!(differences(&pair.ledger()), Vec::<String>::new());
}

#[test]
fn leg_that_became_whole_is_noticed() {
    let place = Place::new();
    enter(&place.ledger(), &[(prefill(row(1)), None)]);
    let connection = Connection::open(place.ledger()).unwrap();
    connection.execute_batch("UPDATE exchange SET role = NULL").unwrap();
    drop(connection);
    assert!(!differences(&place.ledger()).is_empty());
}

/// The finance page's question: a request of two legs, one that failed twice and then went well, one of which
/// both repetitions were answered, and one that had no id.
#[test]
fn requests_join_legs_and_repetitions() {
    let place = Place::new();
    let by = |n: u64, id: &str, ending: &str, cost| {
        let mut row =
            Row { request_id: Some(id.into()), ending: ending.into(), tenant: "t".into(), ..row(n) };
        if let Charge::Priced { rate, .. } = rate(1) {
            row.charge = Charge::Priced { rate, cost };
        }
        row.tokens.by_type[TokenType::Output as usize] = 1;
        row
    };
    let used = |n| Some(Used { gpu_hours_pico: n, ..Used::default() });
    let alone = Row { request_id: None, ..by(9, "", "complete", 1) };
    let other = Row { tenant: "other".into(), ..by(10, "failed", "complete", 1_000) };
    enter(
        &place.ledger(),
        &[
            (prefill(by(1, "legs", "length", 0)), used(50)),
            (
                Row { role: Role::Decode, request_id: Some("req-1".into()), ..by(2, "", "complete", 30) },
                used(7),
            ),
            (by(3, "failed", "upstream_cut", 5), None),
            (by(4, "failed", "error_status", 0), None),
            (Row { upstream_attempts: 2, ..by(5, "failed", "complete", 20) }, None),
            (by(6, "twice", "complete", 8), None),
            (by(7, "twice", "length", 9), None),
            (alone, None),
            (other, None),
        ],
    );
    let connection = Connection::open(place.ledger()).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT iif(request LIKE 'exchange:%', 'alone', request), exchanges, prefill_legs, decode_legs, \
             failed_exchanges, upstream_attempts, is_success, cost_pico, failed_cost_pico, repeated_cost_pico, \
             gpu_usd_pico, prefill_gpu_usd_pico FROM requests WHERE tenant = 't' ORDER BY 1",
        )
        .unwrap();
    let found: Vec<(String, [i64; 11])> = statement
        .query_map([], |row| {
            let mut numbers = [0; 11];
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = row.get(at + 1)?;
            }
            Ok((row.get(0)?, numbers))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let expected = [
        ("alone", [1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]),
        ("id:failed", [3, 0, 0, 2, 4, 1, 25, 5, 5, 0, 0]),
        ("id:req-1", [1, 1, 1, 0, 2, 1, 30, 0, 0, 57, 50]),
        ("id:twice", [2, 0, 0, 0, 2, 1, 17, 0, 8, 0, 0]),
    ];
    assert_eq!(found, expected.map(|(name, numbers)| (name.to_owned(), numbers)));
    let of_exchanges: i64 =
        connection.query_row("SELECT sum(cost_pico) FROM exchanges", [], |row| row.get(0)).unwrap();
    let of_requests: i64 =
        connection.query_row("SELECT sum(cost_pico) FROM requests", [], |row| row.get(0)).unwrap();
    assert_eq!(of_exchanges, of_requests);
}

/// An agent's trace has many requests, so that only legs are joined by it, and nothing of it counts as repeated.
#[test]
fn legs_without_id_are_joined_by_trace() {
    let place = Place::new();
    let traced = |n, role| Row { role, trace: Some([7; 16]), tenant: "t".into(), ..row(n) };
    let prefill = Row { charge: Charge::Unpriced(Unpriced::Leg), ..traced(1, Role::Prefill) };
    let rows = [prefill, traced(2, Role::Decode), traced(3, Role::Decode), traced(4, Role::Whole)];
    enter(&place.ledger(), &rows.map(|row| (row, None)));
    let connection = Connection::open(place.ledger()).unwrap();
    let mut statement = connection
        .prepare("SELECT substr(request, 1, 5), exchanges, prefill_legs, repeated_cost_pico FROM requests ORDER BY 1")
        .unwrap();
    let found: Vec<(String, [i64; 3])> = statement
        .query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(found, [("excha".to_owned(), [1, 0, 0]), ("trace".to_owned(), [2, 1, 0])]);
}
