//! Rejections: only by an enforced budget, only until its period ends.

use budget::{Budget, Period};

use super::{UNIT, at, budget, dollars, tenant};

fn enforced(name: &str, tenants: &str, period: Period, hard: i64) -> Budget {
    Budget { enforce: true, ..budget(name, tenants, period, None, Some(hard)) }
}

#[test]
fn unenforced_budget_rejects_no_tenant() {
    let mut budgets = dollars(vec![budget("b", "*", Period::Day, Some(1), Some(2))]);
    budgets.charge("a", at(3, 0), 50 * UNIT);
    assert!(budgets.rejections(at(3, 1)).is_empty());
}

#[test]
fn tenant_is_rejected_until_the_period_ends() {
    let mut budgets = dollars(vec![enforced("b", "a*", Period::Day, 2)]);
    budgets.charge("a", at(3, 10), 2 * UNIT - 1);
    budgets.charge("ab", at(3, 10), 2 * UNIT);
    budgets.charge("c", at(3, 10), 9 * UNIT);
    let refused = budgets.rejections(at(3, 12));
    assert_eq!(refused.keys().collect::<Vec<_>>(), [&tenant("ab")]);
    let reason = &refused[&tenant("ab")];
    assert_eq!(reason.retry_after_s, 12 * 3600);
    assert_eq!(
        &*reason.message,
        "budget exceeded: `b` allows 2.00 USD for a day, and that is spent; try again after 2026-11-04T00:00:00Z"
    );
    // One microsecond before the end still gives a second.
    assert_eq!(budgets.rejections(at(4, 0) - 1)[&tenant("ab")].retry_after_s, 1);
    assert!(budgets.rejections(at(4, 0)).is_empty());
    // The clock goes back to that day.
    assert_eq!(budgets.rejections(at(3, 13)).len(), 1);
    budgets.charge("ab", at(3, 10), -1);
    assert!(budgets.rejections(at(3, 14)).is_empty());
}

#[test]
fn longest_of_several_rejections_counts() {
    let mut budgets = dollars(vec![
        enforced("day", "a", Period::Day, 1),
        enforced("month", "a", Period::Month, 1),
        enforced("week", "a", Period::Week, 1),
    ]);
    budgets.charge("a", at(3, 0), UNIT);
    assert_eq!(budgets.rejections(at(3, 0))[&tenant("a")].retry_after_s, 28 * 86_400);
}

#[test]
fn rolling_rejection_ends_when_enough_days_expire() {
    let mut budgets = dollars(vec![enforced("b", "a", Period::Rolling, 5)]);
    budgets.charge("a", at(1, 0), UNIT);
    budgets.charge("a", at(4, 0), 3 * UNIT);
    budgets.charge("a", at(6, 0), 3 * UNIT);
    assert_eq!(budgets.rejections(at(6, 0))[&tenant("a")].retry_after_s, 28 * 86_400, "including today");
    let refused = budgets.rejections(at(7, 0));
    // Without the 1st there are 6, without the 4th 3: on the 34th day, the 4th of December.
    assert_eq!(refused[&tenant("a")].retry_after_s, 27 * 86_400);
    assert!(refused[&tenant("a")].message.contains(" 5.00 USD for any 30 days, "));
    assert!(refused[&tenant("a")].message.ends_with(" 2026-12-04T00:00:00Z"));
    assert_eq!(budgets.rejections(at(34, 0) - 1).len(), 1);
    assert!(budgets.rejections(at(34, 0)).is_empty());
}

#[test]
fn rolling_budget_of_zero_rejects_for_thirty_days() {
    let mut budgets = dollars(vec![enforced("b", "a", Period::Rolling, 0)]);
    budgets.charge("a", at(3, 0), UNIT);
    assert_eq!(budgets.rejections(at(4, 0))[&tenant("a")].retry_after_s, 30 * 86_400);
}

/// A clock that was ahead has left spend on the 33rd day, so the sum stays at the limit for the next thirty.
#[test]
fn rolling_rejection_lasts_at_most_thirty_days() {
    let mut budgets = dollars(vec![enforced("b", "a", Period::Rolling, 5)]);
    budgets.charge("a", at(3, 0), 5 * UNIT);
    budgets.charge("a", at(33, 0), 5 * UNIT);
    assert_eq!(budgets.rejections(at(4, 0))[&tenant("a")].retry_after_s, 30 * 86_400);
}

#[test]
fn overflow_tenant_has_no_budget() {
    let mut budgets = dollars(vec![enforced("b", "*", Period::Day, 1)]);
    budgets.charge("_other", at(3, 0), 9 * UNIT);
    assert!(budgets.rejections(at(3, 1)).is_empty());
    assert_eq!(budgets.untracked(), 1);
}

#[test]
fn shared_limit_rejects_every_covered_tenant() {
    let mut budgets =
        dollars(vec![Budget { shared: true, ..enforced("team", "a,b,team-*", Period::Day, 3) }]);
    budgets.charge("a", at(3, 0), 2 * UNIT);
    budgets.charge("team-x", at(3, 0), UNIT);
    budgets.charge("other", at(3, 0), UNIT);
    let mut refused: Vec<_> = budgets.rejections(at(3, 1)).into_keys().collect();
    refused.sort();
    // `b` has sent no request yet, but the budget names it.
    assert_eq!(refused, [tenant("a"), tenant("b"), tenant("team-x")]);
}
