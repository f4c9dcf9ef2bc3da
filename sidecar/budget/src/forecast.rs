//! What will have been spent by the period's end, if things go on: the mean of two straight lines,
//! one at the pace of the period so far, one at the pace of the last 24 hours. The first alone
//! would be late to see a change, the second would take every burst for one.
//!
//! Both are made of the days' sums alone: of yesterday the part counts that is less than 24 hours
//! ago, as if its sum had been spent evenly. So the forecast is the same after a restart.

use crate::period::{DAY_S, Period, Span, day_of};
use crate::spend::Spend;

/// The forecast in pico-units; none while there is too little to say. Of the rolling period it is
/// what its thirty days will hold thirty days from now.
pub(crate) fn forecast(spend: &Spend, period: Period, span: Span, now_s: i64) -> Option<i128> {
    let length_s = span.seconds();
    let start = match period {
        Period::Rolling => spend.first(span.start, span.end)?,
        _ => span.start,
    };
    let elapsed_s = now_s - i64::from(start) * DAY_S;
    if elapsed_s < (length_s / LEAST_PART).max(LEAST_S) || elapsed_s > length_s {
        return None;
    }
    let used = spend.between(span.start, span.end);
    let ahead_s = match period {
        Period::Rolling => length_s,
        _ => length_s - elapsed_s,
    };
    let so_far = scaled(used, ahead_s, elapsed_s);
    let lately = scaled(last_day_seconds(spend, now_s), ahead_s, DAY_S * DAY_S);
    let more = so_far.saturating_add(lately) / 2;
    Some(match period {
        Period::Rolling => more,
        _ => used.saturating_add(more),
    })
}

/// What was spent in the last 24 hours, times the seconds of a day: so nothing is rounded yet.
fn last_day_seconds(spend: &Spend, now_s: i64) -> i128 {
    let today = day_of(now_s.saturating_mul(1_000_000));
    let still_s = DAY_S - now_s.rem_euclid(DAY_S);
    let yesterday = spend.between(today - 1, today).saturating_mul(i128::from(still_s));
    let today = spend.between(today, today + 1).saturating_mul(i128::from(DAY_S));
    yesterday.saturating_add(today)
}

fn scaled(pico: i128, by: i64, of: i64) -> i128 {
    pico.saturating_mul(i128::from(by)) / i128::from(of)
}

/// No forecast before a twentieth of the period is over: 72 minutes of a day, 36 hours of a month.
const LEAST_PART: i64 = 20;

/// Nor before an hour is.
const LEAST_S: i64 = 3600;
