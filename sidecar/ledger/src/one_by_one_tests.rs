//! A batch with something in it that no file can hold: all else is entered, in the order in which a whole
//! batch is, and what is not is counted.

use std::time::{Duration, Instant};

use crate::queue::QUEUE_MAX_ITEMS;
use crate::running::Ledger;
use crate::source::{Range, Source, Used};
use crate::testing::{Place, row};
use crate::{Class, EnergyRow, Plan, Row, Store, start, verify};

/// Limit for a ledger that hangs. On a busy machine the 61,000 rows of one test take minutes.
const LONG: Duration = Duration::from_secs(600);

/// A ledger whose directory is not there yet, so that all that is entered waits.
fn waiting() -> (Place, Plan, Ledger) {
    let place = Place::new();
    let plan = Plan::new(place.path("later").join("x.db"));
    let ledger = start(plan.clone());
    (place, plan, ledger)
}

#[track_caller]
fn written(place: &Place, ledger: &Ledger) {
    std::fs::create_dir(place.path("later")).unwrap();
    let end = Instant::now() + LONG;
    while ledger.status().queued_rows > 0 || !ledger.status().up {
        assert!(Instant::now() < end, "{:?}", ledger.status());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(ledger.shutdown(LONG));
}

fn of_tokens(n: u64, tokens: u64) -> Row {
    let mut row = row(n);
    row.tokens.by_type[0] = tokens;
    row
}

/// Exchanges of a class.
fn exchanges(plan: &Plan, class: Class) -> u64 {
    let store = Store::open_read(&plan.path).unwrap();
    let mut sum = 0;
    store
        .daily_totals(&Range::ALL, &mut |_, line| {
            sum += if line.key.class == class { line.sums.exchanges } else { 0 };
            Ok(())
        })
        .unwrap();
    sum
}

fn gaps(plan: &Plan) -> Vec<(String, Option<u64>)> {
    let mut gaps: Vec<_> = Store::open_read(&plan.path)
        .unwrap()
        .gaps(&Range::ALL)
        .unwrap()
        .into_iter()
        .map(|gap| (gap.why.to_string(), gap.lost_rows))
        .collect();
    gaps.sort();
    gaps
}

#[track_caller]
fn well(plan: &Plan) {
    for verdict in verify(&plan.path, None).unwrap() {
        assert_eq!(verdict.differences, []);
    }
}

/// Rows that alone or together are more than a column holds, among those that are kept in totals.
#[test]
fn total_that_does_not_fit_loses_no_other() {
    let (place, plan, ledger) = waiting();
    let all = QUEUE_MAX_ITEMS as u64;
    (0..all).for_each(|n| ledger.enter(row(n)));
    // One that never fits, two that do not fit together, and ten of other lines that do.
    ledger.enter(of_tokens(7_000_000, u64::MAX));
    let half = i64::MAX as u64 / 2 + 1;
    [7_000_002, 7_000_008].into_iter().for_each(|n| ledger.enter(of_tokens(n, half)));
    (0..10).for_each(|n| ledger.enter(row(8_000_001 + 2 * n)));
    written(&place, &ledger);
    let status = ledger.status();
    assert_eq!((status.rows_total, status.shed_rows_total, status.lost_rows_total), (all, 12, 3));
    assert_eq!((exchanges(&plan, Class::Usage), exchanges(&plan, Class::Shed)), (all, 10));
    assert_eq!(gaps(&plan), [("lost".to_owned(), Some(3)), ("shed".to_owned(), Some(10))]);
    well(&plan);
}

/// The GPU use of an exchange finds the exchange, although another row of its batch cannot be entered.
#[test]
fn rows_are_entered_before_what_they_used() {
    let (place, plan, ledger) = waiting();
    let used = Used { gpu_ns: Some(7), gpu_hours_pico: 1, ..Used::default() };
    for n in 0..4 {
        ledger.energy(EnergyRow::of(&row(n), used));
        ledger.enter(row(n));
    }
    ledger.enter(of_tokens(5, u64::MAX));
    written(&place, &ledger);
    assert_eq!((ledger.status().rows_total, ledger.status().lost_rows_total), (4, 1));
    assert_eq!((exchanges(&plan, Class::Usage), exchanges(&plan, Class::Shed)), (4, 0));
    assert_eq!(gaps(&plan), [("lost".to_owned(), Some(1))]);
    well(&plan);
}
