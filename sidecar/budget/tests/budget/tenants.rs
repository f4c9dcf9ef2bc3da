//! The tenants that budgets cover, and the limit of tracked tenants.

use budget::{Budget, OTHER, Period, TRACKED_MAX_TENANTS, tightest};

use super::{UNIT, at, budget, dollars, ids};

#[test]
fn limits_are_per_tenant_unless_shared() {
    let shared = Budget { shared: true, ..budget("all", "*", Period::Day, None, Some(10)) };
    let mut budgets = dollars(vec![budget("each", "team-*", Period::Day, None, Some(10)), shared]);
    for name in ["team-a", "team-b", "lone"] {
        budgets.charge(name, at(3, 0), 4 * UNIT);
    }
    assert_eq!(
        ids(&budgets.tick(at(3, 0))),
        ["all/*/2026-11-03/50", "all/*/2026-11-03/80", "all/*/2026-11-03/100"]
    );
    let states: Vec<_> = (budgets.states(at(3, 0)).into_iter())
        .map(|one| format!("{} {} {}", one.budget, one.tenant, one.used / i128::from(UNIT)))
        .collect();
    assert_eq!(states, ["each team-a 4", "each team-b 4", "all _shared:all 12"]);
}

#[test]
fn named_tenants_have_a_state_before_they_spend() {
    let budgets = dollars(vec![budget("b", "a,b,c*", Period::Day, Some(1), None)]);
    let states = budgets.states(at(3, 0));
    assert_eq!(states.iter().map(|one| &*one.tenant).collect::<Vec<_>>(), ["a", "b"]);
    assert!(states.iter().all(|one| one.used == 0 && one.forecast.is_none_or(|forecast| forecast == 0)));
}

#[test]
fn tracked_tenants_are_bounded() {
    let strict = Budget { enforce: true, ..budget("each", "*", Period::Day, None, Some(1)) };
    let shared = Budget { shared: true, ..budget("all", "*", Period::Day, None, Some(1)) };
    let mut budgets = dollars(vec![strict, shared]);
    budgets.tick(at(3, 0));
    for number in 0..TRACKED_MAX_TENANTS + 7 {
        budgets.charge(&format!("t{number}"), at(3, 0), UNIT);
    }
    budgets.charge(OTHER, at(3, 0), UNIT);
    assert_eq!(budgets.untracked(), 8);
    assert_eq!(budgets.rejections(at(3, 0)).len(), TRACKED_MAX_TENANTS);
    let states = budgets.states(at(3, 0));
    assert_eq!(states.len(), TRACKED_MAX_TENANTS + 1);
    // The shared limit includes all of them.
    let shared = states.last().unwrap();
    assert_eq!(
        (&*shared.tenant, shared.used),
        ("_shared:all", i128::from(UNIT) * (TRACKED_MAX_TENANTS as i128 + 8))
    );
    // Months later idle tenants are evicted for new ones.
    budgets.tick(at(80, 0));
    budgets.charge("new", at(80, 0), UNIT);
    assert_eq!(budgets.untracked(), 8);
    assert_eq!(budgets.rejections(at(80, 0)).len(), 1);
}

#[test]
fn uncovered_tenants_are_not_tracked() {
    let mut budgets = dollars(vec![budget("b", "a*", Period::Day, None, Some(1))]);
    budgets.charge("b", at(3, 0), UNIT);
    assert_eq!((budgets.states(at(3, 0)).len(), budgets.untracked()), (0, 0));
}

#[test]
fn gauges_show_the_tightest_budget_of_a_period() {
    let mut budgets = dollars(vec![
        budget("wide", "a", Period::Day, None, Some(10)),
        budget("tight", "a", Period::Day, Some(3), None),
        budget("last", "a", Period::Day, None, Some(5)),
        budget("month", "a", Period::Month, None, Some(50)),
    ]);
    budgets.charge("a", at(3, 0), UNIT);
    let shown = tightest(budgets.states(at(3, 0)));
    assert_eq!(shown.iter().map(|one| &*one.budget).collect::<Vec<_>>(), ["tight", "month"]);
}
