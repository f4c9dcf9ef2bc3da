//! The totals of a central store: other processes' spend is added, and own spend is not counted twice.

use budget::{Budgets, Observed, Period};

use super::{UNIT, at, budget, day, dollars, ids, tenant};

fn seen(on: i64, ours: i64, all: i64) -> Observed {
    Observed { tenant: tenant("a"), day: day(on), ours: (ours * UNIT).into(), all: (all * UNIT).into() }
}

fn used(budgets: &Budgets) -> i128 {
    budgets.states(at(3, 5))[0].used / i128::from(UNIT)
}

#[test]
fn own_spend_counts_once_before_and_after_shipping() {
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(100))]);
    budgets.charge("a", at(3, 0), 5 * UNIT);
    assert_eq!(used(&budgets), 5);
    // 3 of this process's 5 have arrived, beside 10 of other processes.
    budgets.observe(at(3, 1), &[seen(3, 3, 13)]);
    assert_eq!(used(&budgets), 15);
    // All 5 have arrived.
    budgets.observe(at(3, 2), &[seen(3, 5, 16)]);
    assert_eq!(used(&budgets), 16);
    budgets.charge("a", at(3, 3), UNIT);
    assert_eq!(used(&budgets), 17);
    // The process's own ledger was lost; the central store has its part.
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(100))]);
    budgets.observe(at(3, 2), &[seen(3, 5, 16), seen(2, 0, 1)]);
    assert_eq!(used(&budgets), 17);
    // Later totals replace earlier ones.
    budgets.observe(at(3, 3), &[seen(2, 0, 2)]);
    assert_eq!(used(&budgets), 2);
}

#[test]
fn thresholds_of_the_first_totals_count_as_sent() {
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(20))]);
    budgets.observe(at(3, 1), &[seen(3, 0, 11)]);
    assert_eq!(ids(&budgets.tick(at(3, 1))), [""; 0]);
    budgets.observe(at(3, 2), &[seen(3, 0, 16)]);
    assert_eq!(ids(&budgets.tick(at(3, 2))), ["b/a/2026-11-01/80"]);
}
