//! The chart of a month's cost by day: one bar for each day, drawn as rectangles. All coordinates are whole tenths of a
//! unit, computed without floats.

use std::collections::BTreeMap;

use ledger::source::Month;
use ledger::{month, period};
use maud::{Markup, html};
use price::Currency;

use crate::amount;

/// The width of the drawing, tenths of a unit.
const WIDTH: i128 = 1800;

/// The height of the area of bars, tenths of a unit.
const HEIGHT: i128 = 360;

/// The space above the bars for the largest amount, and below for the days, tenths of a unit.
const ABOVE: i128 = 50;
const BELOW: i128 = 60;

/// Draws the cost of the days of a month, pico-units, with amounts of `round` decimals, or exact ones. `None` if every
/// day costs 0.
pub(crate) fn chart(
    month: Month,
    currency: Currency,
    cost: &BTreeMap<i32, i128>,
    round: Option<u32>,
) -> Option<Markup> {
    let days: Vec<i32> = (month::first_day(month)..month::first_day(month + 1)).collect();
    let of = |day: &i32| cost.get(day).copied().unwrap_or(0);
    let most = days.iter().map(of).max()?.max(0);
    let least = days.iter().map(of).min()?.min(0);
    let span = most - least;
    if span == 0 {
        return None;
    }
    // Beyond the largest numbers, bars only keep their order.
    let scaled = |pico: i128| pico.checked_mul(HEIGHT).map_or(pico / (span / HEIGHT).max(1), |it| it / span);
    let zero = ABOVE + scaled(most);
    let step = WIDTH / i128::try_from(days.len()).ok()?;
    let bars = days.iter().enumerate().map(|(at, day)| {
        let (x, size) = (i128::try_from(at).unwrap_or(0) * step, scaled(of(day)));
        let y = if size > 0 { zero - size } else { zero };
        (x, y, size.abs(), *day)
    });
    let bars: Vec<(i128, i128, i128, i32)> = bars.collect();
    let code = currency.code();
    Some(html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img"
            viewBox=(format!("0 0 {} {}", tenths(WIDTH), tenths(ABOVE + HEIGHT + BELOW))) {
            title { "Cost by day, " (code) }
            text x="0" y="3.4" { (amount::one(most, round)) " " (code) }
            @for (x, y, height, day) in &bars {
                rect x=(tenths(*x)) y=(tenths(*y)) width=(tenths(step * 7 / 10)) height=(tenths(*height))
                    fill="#003c88" {
                    title { (period::day(*day)) ": " (amount::one(of(day), round)) " " (code) }
                }
                text x=(tenths(*x + step * 7 / 20)) y=(tenths(ABOVE + HEIGHT + 45)) text-anchor="middle" {
                    (day - days[0] + 1)
                }
            }
            rect x="0" y=(tenths(zero)) width=(tenths(WIDTH)) height="0.2" fill="#111" {}
        }
    })
}

/// Formats a coordinate.
fn tenths(tenths: i128) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::chart;
    use price::Currency;

    #[test]
    fn bars_are_in_proportion() {
        let cost = [(20_727, 4_000_000), (20_728, 1_000_000), (20_757, -4_000_000), (20_758, 99)].into();
        let drawn = chart(681, Currency::USD, &cost, None).expect("days cost something").into_string();
        let bars: Vec<&str> = drawn.split("<rect ").skip(1).collect();
        assert_eq!(bars.len(), 31 + 1, "{drawn}");
        assert!(bars[0].contains(r#"y="5.0" width="4.0" height="18.0""#), "{}", bars[0]);
        assert!(bars[1].contains(r#"y="18.5" width="4.0" height="4.5""#), "{}", bars[1]);
        assert!(bars[30].contains(r#"y="23.0" width="4.0" height="18.0""#), "{}", bars[30]);
        assert!(bars[30].contains("2026-10-31: -0.000004 USD"), "{}", bars[30]);
    }

    #[test]
    fn only_free_months_have_no_chart() {
        assert!(chart(681, Currency::USD, &[(20_727, 0)].into(), None).is_none());
        assert!(chart(681, Currency::USD, &[(20_727, i128::MAX / 2)].into(), None).is_some());
    }
}
