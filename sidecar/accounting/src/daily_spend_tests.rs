//! The sums of a day by tenant.

use price::Unpriced;

use super::*;

const NOON: i64 = 20_000 * DAY_US + DAY_US / 2;

fn priced(cost: i64) -> Charge {
    let rate = crate::test_rates::rate(Currency(*b"EUR"), 0);
    Charge::Priced { rate: Arc::new(rate), cost }
}

/// Returns name, cost, exchanges and exchanges without a price.
fn line(tenant: &page::Tenant) -> (&str, &str, u64, u64) {
    (&tenant.name, &tenant.cost, tenant.exchanges, tenant.unpriced)
}

#[test]
fn tenants_are_sorted_by_cost() {
    let today = DailySpend::new(NOON);
    assert_eq!(today.shown(NOON), None);
    for (tenant, charge) in [
        ("a", priced(100_000_000_000)),
        ("a", priced(200_000_000_000)),
        ("b", priced(1_000_000_000_001)),
        ("c", Charge::Unpriced(Unpriced::Model)),
        ("b", Charge::Unpriced(Unpriced::TokenType)),
    ] {
        today.enter(tenant.into(), NOON, &charge, NOON);
    }
    let shown = today.shown(NOON).unwrap();
    let lines: Vec<_> = shown.tenants.iter().map(line).collect();
    assert_eq!(lines, [("b", "1.000000000001", 2, 1), ("a", "0.30", 2, 0), ("c", "0.00", 1, 1)]);
    assert_eq!((shown.rest.as_ref(), line(&shown.all)), (None, ("all", "1.300000000001", 5, 2)));
    assert_eq!((&*shown.currency, shown.since.as_deref()), ("EUR", Some("12:00")));
}

#[test]
fn tenants_beyond_ten_are_summed() {
    let today = DailySpend::new(NOON - DAY_US);
    for at in 0..13_i64 {
        let charge = if at < 12 { priced(at * 1_000_000_000_000) } else { Charge::Unpriced(Unpriced::Model) };
        today.enter(format!("tenant-{at:02}").into(), NOON, &charge, NOON);
    }
    let shown = today.shown(NOON).unwrap();
    assert_eq!((shown.tenants.len(), line(&shown.tenants[0])), (10, ("tenant-11", "11.00", 1, 0)));
    assert_eq!(shown.rest.as_ref().map(line), Some(("3 others", "1.00", 3, 1)));
    assert_eq!(line(&shown.all), ("all", "66.00", 13, 1));
    assert_eq!(shown.since, None, "the process ran all day");
}

#[test]
fn restored_day_has_the_ledgers_sums() {
    let today = DailySpend::new(NOON);
    let sum = Sum { pico: 5, exchanges: 2, unpriced: 1 };
    today.restore(
        vec![("a".into(), sum), ("_other".into(), sum), ("_other".into(), sum)],
        Currency(*b"EUR"),
        NOON,
    );
    today.enter("a".into(), NOON, &priced(7), NOON);
    let shown = today.shown(NOON).unwrap();
    assert_eq!(line(&shown.tenants[0]), ("a", "0.000000000012", 3, 1));
    assert_eq!((line(&shown.all), shown.since), (("all", "0.000000000022", 7, 3), None));
    assert_eq!(today.shown(NOON + DAY_US), None, "tomorrow starts empty");
}

#[test]
fn day_ends_at_midnight() {
    let midnight = 20_001 * DAY_US;
    let today = DailySpend::new(NOON);
    today.enter("a".into(), midnight - 1, &priced(7), midnight - 1);
    assert!(today.shown(midnight - 1).is_some());
    assert_eq!(today.shown(midnight), None, "that was yesterday");
    today.enter("late".into(), midnight - 1, &priced(7), midnight + 1);
    assert_eq!(today.shown(midnight + 1), None, "it ended yesterday");
    today.enter("a".into(), midnight, &priced(7), midnight + 1);
    assert_eq!(line(&today.shown(midnight + 1).unwrap().all), ("all", "0.000000000007", 1, 0));
    // The clock is set back: the sums of the day were cleared, and those of tomorrow are not shown.
    assert_eq!(today.shown(midnight - 1), None);
}
