//! The forecast, and its alert: sent once, after it has been above the limit for a while, and only if
//! enough of the period is over.

use budget::{Budgets, Notice, Period, SentAlerts, Threshold};

use super::{HOUR_US, UNIT, at, budget, day, dollars, tenant};

const MINUTE_US: i64 = HOUR_US / 60;

fn ids(notices: &[Notice]) -> Vec<String> {
    notices.iter().map(Notice::id).collect()
}

fn forecast(budgets: &Budgets, now_us: i64) -> Option<i128> {
    budgets.states(now_us)[0].forecast
}

#[test]
fn steady_spending_is_forecast_exactly() {
    // One unit an hour.
    for (period, hours, whole) in [
        (Period::Day, 24, 24),
        (Period::Week, 168, 168),
        (Period::Month, 720, 720),
        (Period::Rolling, 720, 720),
    ] {
        let mut budgets = dollars(vec![budget("b", "a", period, None, Some(1_000_000))]);
        // From the 2nd of November, a Monday; the month from the 1st.
        let start = if period == Period::Month { 1 } else { 2 };
        let mut seen = 0;
        for hour in 0..hours {
            budgets.charge("a", at(start, hour), UNIT);
            if let Some(forecast) = forecast(&budgets, at(start, hour + 1) - 1) {
                let off = (forecast - i128::from(whole * UNIT)).abs();
                // On the first day the 24 hours before it are missing.
                let allowed = if hour < 24 { i128::from(whole * UNIT) / 2 } else { i128::from(UNIT) / 50 };
                assert!(off <= allowed, "{period:?} hour {hour}: {forecast}");
                seen += 1;
            }
        }
        assert!(seen >= hours * 9 / 10, "{period:?}: {seen}");
    }
}

#[test]
fn too_little_elapsed_time_gives_no_forecast() {
    for (period, none, some) in [
        (Period::Day, at(2, 0) + 71 * MINUTE_US, at(2, 0) + 72 * MINUTE_US),
        (Period::Week, at(2, 8), at(2, 9)),
        (Period::Month, at(2, 11), at(2, 12)),
        (Period::Rolling, at(2, 11), at(2, 12)),
    ] {
        let mut budgets = dollars(vec![budget("b", "a", period, None, Some(10))]);
        let first = if period == Period::Rolling { 1 } else { 2 };
        budgets.charge("a", at(first, 0), UNIT);
        assert_eq!(forecast(&budgets, none), None, "{period:?}");
        assert!(forecast(&budgets, some).is_some(), "{period:?}");
    }
}

#[test]
fn forecast_alert_is_sent_once_after_ten_minutes() {
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(100))]);
    budgets.charge("a", at(10, 0), 40 * UNIT);
    let start = at(10, 0);
    let mut told = Vec::new();
    for minute in 0..60 {
        let notices = budgets.tick(start + minute * MINUTE_US);
        told.extend(notices.into_iter().map(|notice| (minute, notice)));
    }
    let [(minute, notice)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*minute, notice.threshold), (10, Threshold::Forecast));
    assert_eq!(notice.id(), "b/a/2026-11-01/forecast");
    assert!(notice.forecast.unwrap() > notice.limit && notice.used < notice.limit);
    assert!(notice.sentence().contains(" will have spent "), "{}", notice.sentence());
    // Below the limit for days, then above it again.
    for day in 11..30 {
        assert!(budgets.tick(at(day, 0)).iter().all(|notice| notice.threshold != Threshold::Forecast));
        budgets.charge("a", at(day, 0), if day > 25 { 5 * UNIT } else { 0 });
    }
}

#[test]
fn reverted_burst_sends_no_forecast_alert() {
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(100))]);
    budgets.charge("a", at(10, 0), 40 * UNIT);
    assert_eq!(ids(&budgets.tick(at(10, 0))), [""; 0]);
    assert_eq!(ids(&budgets.tick(at(10, 0) + 9 * MINUTE_US)), [""; 0]);
    budgets.charge("a", at(10, 0), -38 * UNIT);
    assert_eq!(ids(&budgets.tick(at(10, 0) + 10 * MINUTE_US)), [""; 0]);
    budgets.charge("a", at(10, 0), 38 * UNIT);
    assert_eq!(ids(&budgets.tick(at(10, 0) + 11 * MINUTE_US)), [""; 0], "the ten minutes start again");
    assert_eq!(ids(&budgets.tick(at(10, 0) + 21 * MINUTE_US)), ["b/a/2026-11-01/forecast"]);
}

#[test]
fn forecast_near_the_limit_counts_as_above() {
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(100))]);
    let start = at(15, 0);
    // Half of the month is over: 40 and the same again are 80, plus today's burst.
    budgets.charge("a", at(1, 0), 40 * UNIT);
    let burst = |budgets: &mut Budgets, units: i64| budgets.charge("a", at(15, 0), units * UNIT);
    burst(&mut budgets, 3);
    assert!(forecast(&budgets, start).unwrap() > i128::from(100 * UNIT / 100 * 90));
    burst(&mut budgets, 1);
    let above = forecast(&budgets, start).unwrap();
    // A limit just below this forecast.
    let limit = above - 1;
    let mut budget_ = budget("b", "a", Period::Month, None, None);
    budget_.hard = Some(limit);
    let mut budgets = dollars(vec![budget_]);
    budgets.charge("a", at(1, 0), 40 * UNIT);
    burst(&mut budgets, 4);
    assert_eq!(ids(&budgets.tick(start)), [""; 0]);
    // A minute later it is slightly below, and stays so for a while.
    for minute in 1..=15 {
        assert!(forecast(&budgets, start + minute * MINUTE_US).unwrap() <= limit);
        assert_eq!(ids(&budgets.tick(start + minute * MINUTE_US)), [""; 0]);
    }
    budgets.charge("a", at(15, 0), UNIT / 10);
    assert_eq!(
        ids(&budgets.tick(start + 16 * MINUTE_US)),
        ["b/a/2026-11-01/forecast"],
        "it was never below 95 %"
    );
}

#[test]
fn reached_limit_sends_no_forecast_alert() {
    let mut budgets = dollars(vec![budget("b", "a", Period::Month, None, Some(100))]);
    budgets.charge("a", at(10, 0), 200 * UNIT);
    for hour in 0..24 {
        let told = budgets.tick(at(10, hour));
        assert!(told.iter().all(|notice| notice.threshold != Threshold::Forecast));
    }
}

#[test]
fn rolling_forecast_alerts_once_in_thirty_days() {
    let mut budgets = dollars(vec![budget("30d", "a", Period::Rolling, None, Some(100))]);
    let mut days = Vec::new();
    for day in 1..=60 {
        let is_more = [1..=5, 15..=19, 45..=49].iter().any(|days| days.contains(&day));
        for hour in 0..24 {
            budgets.charge("a", at(day, hour), if is_more { UNIT / 6 } else { UNIT / 8 });
            let notices = budgets.tick(at(day, hour) + MINUTE_US);
            days.extend(notices.iter().filter(|one| one.threshold == Threshold::Forecast).map(|_| day));
        }
    }
    assert_eq!(days, [2, 45]);
}

/// Such a time is after the end of the last period.
#[test]
fn time_beyond_the_calendar_has_no_forecast() {
    for period in Period::ALL {
        let mut budgets = dollars(vec![budget("b", "a", period, None, Some(10))]);
        budgets.charge("a", i64::MAX, UNIT);
        assert_eq!(forecast(&budgets, i64::MAX), None, "{period:?}");
    }
}

/// Returns the ids of the forecasts alone.
fn forecasts(notices: &[Notice]) -> Vec<String> {
    let forecasts = notices.iter().filter(|notice| notice.threshold == Threshold::Forecast);
    forecasts.map(Notice::id).collect()
}

/// At noon, 4 units make a forecast of 7: the 4, 4 more at the pace of the day, 2 at that of the last 24 hours, halved.
#[test]
fn forecast_equal_to_the_limit_is_not_above_it() {
    let noon = at(3, 12);
    let at_limit = || dollars(vec![budget("b", "a", Period::Day, None, Some(7))]);
    let spent = [(tenant("a"), day(3), i128::from(4 * UNIT))];

    // Its ten minutes do not begin.
    let mut budgets = at_limit();
    budgets.restore(noon, &spent, Some(&SentAlerts::default()));
    assert_eq!(forecast(&budgets, noon), Some(i128::from(7 * UNIT)));
    assert_eq!(forecasts(&budgets.tick(noon)), [""; 0]);
    budgets.charge("a", noon, UNIT);
    assert_eq!(forecasts(&budgets.tick(noon + 5 * MINUTE_US)), [""; 0]);
    assert_eq!(forecasts(&budgets.tick(noon + 10 * MINUTE_US)), [""; 0]);
    assert_eq!(forecasts(&budgets.tick(noon + 15 * MINUTE_US)), ["b/a/2026-11-03/forecast"]);

    // Without a state file it does not count as sent.
    let mut budgets = at_limit();
    budgets.restore(noon, &spent, None);
    budgets.charge("a", noon, UNIT);
    assert_eq!(forecasts(&budgets.tick(noon)), [""; 0]);
    assert_eq!(forecasts(&budgets.tick(noon + 10 * MINUTE_US)), ["b/a/2026-11-03/forecast"]);

    // It ends the ten minutes without an alert.
    let mut budgets = at_limit();
    budgets.charge("a", noon, 4 * UNIT);
    assert_eq!(forecasts(&budgets.tick(noon - 10 * MINUTE_US)), [""; 0]);
    assert!(forecast(&budgets, noon - 10 * MINUTE_US) > Some(i128::from(7 * UNIT)));
    assert_eq!(forecasts(&budgets.tick(noon)), [""; 0]);
}
