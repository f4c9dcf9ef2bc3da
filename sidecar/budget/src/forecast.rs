//! The forecast of a period's spend: the mean of two linear extrapolations,
//! one at the pace of the period so far, one at the pace of the last 24 hours. The first alone
//! would react late, the second would follow every burst.
//!
//! Both use the daily sums alone: yesterday counts by the fraction of it that is less than 24 hours
//! ago, as if it had been spent evenly. So the forecast is the same after a restart.

use calendar::Calendar;

use crate::period::{DAY_S, Period, Span, day_of};
use crate::spend::Spend;

/// Returns the forecast in pico-units, or `None` while too little of the period is over. For the rolling period it is
/// the sum of its thirty days thirty days from now.
pub(crate) fn forecast(
    spend: &Spend,
    period: Period,
    span: Span,
    calendar: &Calendar,
    now_s: i64,
) -> Option<i128> {
    let begin_s = |day| calendar.begin_us(day) / 1_000_000;
    let length_s = begin_s(span.end) - begin_s(span.start);
    let start = match period {
        Period::Rolling => spend.first(span.start, span.end)?,
        _ => span.start,
    };
    let elapsed_s = now_s - begin_s(start);
    if elapsed_s < (length_s / MIN_ELAPSED_DIVISOR).max(MIN_ELAPSED_S) || elapsed_s > length_s {
        return None;
    }
    let used = spend.between(span.start, span.end);
    let ahead_s = match period {
        Period::Rolling => length_s,
        _ => length_s - elapsed_s,
    };
    let so_far = scaled(used, ahead_s, elapsed_s);
    let today = day_of(calendar, now_s.saturating_mul(1_000_000));
    // A day has no length if the calendar skips it.
    let yesterday_s = (begin_s(today) - begin_s(today - 1)).max(1);
    let last_day = last_day_seconds(spend, today, yesterday_s, now_s - begin_s(today));
    let lately = scaled(last_day, ahead_s, DAY_S * yesterday_s);
    let more = so_far.saturating_add(lately) / 2;
    Some(match period {
        Period::Rolling => more,
        _ => used.saturating_add(more),
    })
}

/// Returns the spend of the last 24 hours, times the seconds of yesterday, so that nothing is rounded yet. `elapsed_s`:
/// the time since today began.
fn last_day_seconds(spend: &Spend, today: i32, yesterday_s: i64, elapsed_s: i64) -> i128 {
    let still_s = (DAY_S - elapsed_s).clamp(0, yesterday_s);
    let yesterday = spend.between(today - 1, today).saturating_mul(i128::from(still_s));
    let today = spend.between(today, today + 1).saturating_mul(i128::from(yesterday_s));
    yesterday.saturating_add(today)
}

fn scaled(pico: i128, by: i64, of: i64) -> i128 {
    pico.saturating_mul(i128::from(by)) / i128::from(of)
}

/// The forecast starts when this part of the period (a twentieth) is over: 72 minutes of a day, 36 hours of a month.
const MIN_ELAPSED_DIVISOR: i64 = 20;

/// The least elapsed time of a forecast: an hour.
const MIN_ELAPSED_S: i64 = 3600;
