//! Budgets whose days are those of another time zone than UTC.

use budget::{Budgets, Calendar, Period, Zone, day_of};

use super::{HOUR_US, UNIT, at, budget, day, ids, tenant};

fn berlin() -> Calendar {
    Calendar::of(Zone::named("Europe/Berlin").unwrap())
}

fn budgets(period: Period, hard: i64) -> Budgets {
    let budget = budget::Budget { enforce: true, ..budget("b", "a", period, None, Some(hard)) };
    Budgets::new(vec![budget], "USD").by_calendar(berlin())
}

#[test]
fn periods_begin_at_midnight_of_the_zone() {
    // 23:30 of the 3rd in UTC is 00:30 of the 4th in Berlin.
    for (period, hour, rejected, until) in [
        (Period::Day, 22, true, "2026-11-03T23:00:00Z"),
        (Period::Day, 23, false, ""),
        (Period::Month, 23, true, "2026-11-30T23:00:00Z"),
    ] {
        let mut budgets = budgets(period, 1);
        budgets.charge("a", at(3, 22), UNIT);
        let rejections = budgets.rejections(at(3, hour) + HOUR_US / 2);
        assert_eq!(rejections.contains_key(&tenant("a")), rejected, "{period:?} {hour}");
        if let Some(rejection) = rejections.get(&tenant("a")) {
            assert!(rejection.message.ends_with(until), "{}", rejection.message);
        }
    }
    let mut month = budgets(Period::Month, 1);
    month.charge("a", at(0, 23), UNIT);
    let notices = month.tick(at(0, 23) + 1);
    assert!(ids(&notices).contains(&"b/a/2026-11-01/100".to_owned()), "{:?}", ids(&notices));
    let json = notices[0].json();
    assert_eq!(
        (&json["period_start"], &json["period_end"]),
        (&"2026-10-31T23:00:00Z".into(), &"2026-11-30T23:00:00Z".into())
    );
}

/// The sums by day of a ledger of that zone.
#[test]
fn restored_sums_are_those_of_the_charges() {
    for period in Period::ALL {
        let (mut charged, mut restored) = (budgets(period, 1_000_000), budgets(period, 1_000_000));
        let mut sums = Vec::new();
        for hour in 0..24 * 40 {
            let ended_us = at(-20, hour) + 7;
            charged.charge("a", ended_us, UNIT + hour);
            sums.push((tenant("a"), day_of(&berlin(), ended_us), i128::from(UNIT + hour)));
        }
        sums.retain(|(_, day, _)| *day >= restored.since(at(19, 0)));
        restored.restore(at(19, 0), &sums, None);
        for hour in [0, 22, 23, 24] {
            let states = [&charged, &restored].map(|budgets| budgets.states(at(19, hour))[0].clone());
            assert_eq!(states[0].used, states[1].used, "{period:?} {hour}");
            assert_eq!(states[0].forecast, states[1].forecast, "{period:?} {hour}");
        }
    }
}

/// 2026-10-25 has 25 hours.
#[test]
fn forecast_of_a_long_day_has_its_length() {
    let mut budgets = budgets(Period::Day, 1_000_000);
    assert_eq!(day_of(&berlin(), at(-7, 22)), day(-6));
    for hour in -2..46 {
        budgets.charge("a", at(-7, hour), UNIT);
    }
    let forecast = |hour| budgets.states(at(-7, hour))[0].forecast.unwrap() / i128::from(UNIT);
    // From 22:00 of the 24th in UTC: an hour before its end, 24 units are spent.
    assert_eq!(forecast(22 + 24), 25);
}
