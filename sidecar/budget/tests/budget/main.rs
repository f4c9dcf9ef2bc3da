//! Budgets from outside: alerts, rejections, and equal sums in a naive twin.

#![expect(clippy::unwrap_used, reason = "all of it is a test; the lint spares only functions marked so")]

mod alerts;
mod fleet;
mod forecast;
mod rejections;
mod restart;
mod tenants;
mod time_zone;
mod twin;
mod webhook;

use std::sync::Arc;

use budget::{Budget, Budgets, DAY_US, Notice, Period, Threshold};
use text::Glob;

/// Returns a budget with limits in whole units.
fn budget(name: &str, tenants: &str, period: Period, soft: Option<i64>, hard: Option<i64>) -> Budget {
    let unit = |units: Option<i64>| units.map(|units| i128::from(units) * i128::from(UNIT));
    let globs = tenants.split(',').filter(|glob| *glob != "*").map(Glob::new);
    Budget {
        name: name.into(),
        tenants: globs.collect(),
        shared: false,
        period,
        soft: unit(soft),
        hard: unit(hard),
        enforce: false,
        refuse_unpriced: false,
    }
}

fn dollars(budgets: Vec<Budget>) -> Budgets {
    Budgets::new(budgets, "USD")
}

/// Returns a time in November 2026; days below 1 and above 30 are in the months around it.
fn at(day: i64, hour: i64) -> i64 {
    (DAY_0 + day) * DAY_US + hour * HOUR_US
}

fn day(day: i64) -> i32 {
    i32::try_from(DAY_0 + day).unwrap()
}

/// Returns the ids of the notices without forecasts.
fn ids(notices: &[Notice]) -> Vec<String> {
    let passed = notices.iter().filter(|notice| notice.threshold != Threshold::Forecast);
    passed.map(Notice::id).collect()
}

fn tenant(name: &str) -> Arc<str> {
    name.into()
}

/// 2026-10-31, so that day 1 is the 1st of November, a Sunday.
const DAY_0: i64 = 20_757;

const HOUR_US: i64 = 3_600_000_000;

/// Pico-units in a unit.
const UNIT: i64 = 1_000_000_000_000;

#[test]
fn test_days_match_the_calendar() {
    assert_eq!(Period::Month.span(day(30)).start_date(), "2026-11-01");
    assert_eq!(Period::Month.span(day(30)).end, day(31));
}
