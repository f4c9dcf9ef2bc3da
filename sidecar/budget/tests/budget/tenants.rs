//! Whom budgets cover, and how many of them are told apart.

use budget::{Budget, OTHER, Period, TRACKED, tightest};

use super::{UNIT, at, budget, dollars, ids};

#[test]
fn each_tenant_has_a_purse_of_its_own_unless_they_share() {
    let shared = Budget { shared: true, ..budget("all", "*", Period::Day, None, Some(10)) };
    let mut budgets = dollars(vec![budget("each", "team-*", Period::Day, None, Some(10)), shared]);
    for name in ["team-a", "team-b", "lone"] {
        budgets.charge(name, at(3, 0), 4 * UNIT);
    }
    assert_eq!(
        ids(&budgets.tick(at(3, 0))),
        ["all/*/2026-11-03/50", "all/*/2026-11-03/80", "all/*/2026-11-03/100"]
    );
    let readings: Vec<_> = (budgets.readings(at(3, 0)).into_iter())
        .map(|one| format!("{} {} {}", one.budget, one.tenant, one.used / i128::from(UNIT)))
        .collect();
    assert_eq!(readings, ["each team-a 4", "each team-b 4", "all _shared:all 12"]);
}

#[test]
fn those_named_are_known_before_they_spend() {
    let budgets = dollars(vec![budget("b", "a,b,c*", Period::Day, Some(1), None)]);
    let readings = budgets.readings(at(3, 0));
    assert_eq!(readings.iter().map(|one| &*one.tenant).collect::<Vec<_>>(), ["a", "b"]);
    assert!(readings.iter().all(|one| one.used == 0 && one.forecast.is_none_or(|forecast| forecast == 0)));
}

#[test]
fn there_is_an_end_to_those_told_apart() {
    let strict = Budget { enforce: true, ..budget("each", "*", Period::Day, None, Some(1)) };
    let shared = Budget { shared: true, ..budget("all", "*", Period::Day, None, Some(1)) };
    let mut budgets = dollars(vec![strict, shared]);
    budgets.tick(at(3, 0));
    for number in 0..TRACKED + 7 {
        budgets.charge(&format!("t{number}"), at(3, 0), UNIT);
    }
    budgets.charge(OTHER, at(3, 0), UNIT);
    assert_eq!(budgets.untracked(), 8);
    assert_eq!(budgets.refused(at(3, 0)).len(), TRACKED);
    let readings = budgets.readings(at(3, 0));
    assert_eq!(readings.len(), TRACKED + 1);
    // The shared purse has them all the same.
    let shared = readings.last().unwrap();
    assert_eq!((&*shared.tenant, shared.used), ("_shared:all", i128::from(UNIT) * (TRACKED as i128 + 8)));
    // Months later there is room again, for those who come then.
    budgets.tick(at(80, 0));
    budgets.charge("new", at(80, 0), UNIT);
    assert_eq!(budgets.untracked(), 8);
    assert_eq!(budgets.refused(at(80, 0)).len(), 1);
}

#[test]
fn tenants_no_budget_covers_are_not_kept() {
    let mut budgets = dollars(vec![budget("b", "a*", Period::Day, None, Some(1))]);
    budgets.charge("b", at(3, 0), UNIT);
    assert_eq!((budgets.readings(at(3, 0)).len(), budgets.untracked()), (0, 0));
}

#[test]
fn of_two_budgets_over_one_period_gauges_show_the_tighter() {
    let mut budgets = dollars(vec![
        budget("wide", "a", Period::Day, None, Some(10)),
        budget("tight", "a", Period::Day, Some(3), None),
        budget("month", "a", Period::Month, None, Some(50)),
    ]);
    budgets.charge("a", at(3, 0), UNIT);
    let shown = tightest(budgets.readings(at(3, 0)));
    assert_eq!(shown.iter().map(|one| &*one.budget).collect::<Vec<_>>(), ["tight", "month"]);
}
