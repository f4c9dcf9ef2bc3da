//! Legs and repetitions of a request, and cache writes by lifetime.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use meter::{Provenance, Role, TokenType};
use price::{Charge, Rate, Unpriced};
use rusqlite::Connection;

use crate::source::{Range, Source, Used};
use crate::testing::{NOON_US, Place, rate, row};
use crate::{DailyTotal, EnergyRow, Plan, Row, Store, start, verify};

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
    let verdicts = verify(path, None).unwrap();
    verdicts.iter().flat_map(|verdict| &verdict.differences).map(ToString::to_string).collect()
}

fn prefill(row: Row) -> Row {
    let charge = Charge::Unpriced(Unpriced::Leg);
    Row { role: Role::Prefill, request_id: Some("req-1".into()), charge, upstream: "prefill".into(), ..row }
}

#[test]
fn legs_are_stored_and_decode_leg_is_charged() {
    let place = Place::new();
    let decode = Row {
        role: Role::Decode,
        request_id: Some("req-1".into()),
        upstream_attempts: 2,
        cached_excess: 1_945,
        ..row(1_002)
    };
    enter(&place.ledger(), &[(row(1), None), (prefill(row(1_000)), None), (decode.clone(), None)]);
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    assert_eq!(rows(&place.ledger()), [row(1), prefill(row(1_000)), decode]);
    let sums = sum(&place.ledger()).sums;
    assert_eq!(sums.exchanges, 2);
    let cost = [1, 1_002].map(|n| i128::from(row(n).charge.cost().unwrap()));
    assert_eq!(sums.cost_pico, cost.iter().sum());
}

#[test]
fn engine_counts_are_stored() {
    let place = Place::new();
    let mut counted = row(1_000);
    counted.tokens.input_provenance = Provenance::Engine;
    counted.tokens.output_provenance = Provenance::Engine;
    enter(&place.ledger(), &[(row(1), None), (counted.clone(), None)]);
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    assert_eq!(rows(&place.ledger()), [row(1), counted]);
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
fn cache_writes_of_one_hour_have_totals_and_prices() {
    let place = Place::new();
    enter(&place.ledger(), &[(row(1), None), (written(1_000), None)]);
    assert_eq!(differences(&place.ledger()), Vec::<String>::new());
    assert_eq!(rows(&place.ledger()), [row(1), written(1_000)]);
    let sums = sum(&place.ledger()).sums;
    let of = |kind: TokenType| sums.tokens[kind as usize];
    assert_eq!([TokenType::InputCacheWrite, TokenType::InputCacheWrite1h].map(of), [4, 8]);
    let connection = Connection::open(place.ledger()).unwrap();
    let input = written(1_000).tokens.input();
    for (sql, expected) in [
        ("SELECT input_cache_write_1h FROM exchanges ORDER BY ended DESC LIMIT 1", 8),
        ("SELECT input_tokens FROM exchanges ORDER BY ended DESC LIMIT 1", input),
        ("SELECT sum(input_cache_write_1h) FROM spend_daily", 8),
        ("SELECT sum(input_tokens) FROM spend_daily", row(1).tokens.input() + input),
        ("SELECT count(*) FROM prices WHERE input_cache_write_1h = '6.000000'", 1),
    ] {
        let number = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number.unsigned_abs(), expected, "{sql}");
    }
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
