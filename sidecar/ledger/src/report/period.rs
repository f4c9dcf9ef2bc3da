//! Days and months as people write them, all in UTC.

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;

use super::source::{DAY_US, Month};

/// The instant that a month (`2026-10`), a day (`2026-10-05`) or an RFC 3339 time begins, microseconds
/// since 1970.
///
/// # Errors
/// Says what was expected instead.
pub fn instant(text: &str) -> Result<i64, String> {
    if let Some(month) = month_of(text) {
        return Ok(month_start_us(month));
    }
    if let Ok(date) = text.parse::<Date>()
        && text.len() == "2026-10-05".len()
    {
        return Ok(i64::from(days_of(date)) * DAY_US);
    }
    text.parse::<Timestamp>().map(Timestamp::as_microsecond).map_err(|_| {
        format!(
            "`{}` is no time; write a month (2026-10), a day (2026-10-05) or a time in UTC (2026-10-05T12:00:00Z)",
            text.escape_debug()
        )
    })
}

/// The month of a text like `2026-10`.
pub fn month_of(text: &str) -> Option<Month> {
    let (year, month) = text.split_once('-')?;
    let digits = |text: &str, long| text.len() == long && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(year, 4) || !digits(month, 2) {
        return None;
    }
    let (year, month): (i32, i32) = (year.parse().ok()?, month.parse().ok()?);
    ((1970..=9998).contains(&year) && (1..=12).contains(&month)).then_some((year - 1970) * 12 + month - 1)
}

/// The day of an instant, since 1970.
pub fn day_at(us: i64) -> i32 {
    i32::try_from(us.div_euclid(DAY_US)).unwrap_or(if us < 0 { i32::MIN } else { i32::MAX })
}

/// The month of a day.
pub fn month_at(day: i32) -> Month {
    let date = date_of(day);
    (i32::from(date.year()) - 1970) * 12 + i32::from(date.month()) - 1
}

/// The first instant of a month, microseconds since 1970.
pub fn month_start_us(month: Month) -> i64 {
    let (year, of_year) = (1970 + month.div_euclid(12), month.rem_euclid(12));
    let year = i16::try_from(year).unwrap_or(9998).min(9998);
    let first = date(year, i8::try_from(of_year + 1).unwrap_or(1), 1);
    i64::from(days_of(first)) * DAY_US
}

/// A day, as `2026-10-05`.
pub fn day(day: i32) -> String {
    date_of(day).to_string()
}

/// A month, as `2026-10`.
pub fn month(month: Month) -> String {
    format!("{:04}-{:02}", 1970 + month.div_euclid(12), month.rem_euclid(12) + 1)
}

/// An instant, as `2026-10-05T12:00:00Z`; in whole seconds.
pub fn time(us: i64) -> String {
    let seconds = us.div_euclid(1_000_000);
    Timestamp::from_second(seconds).map_or_else(|_| format!("{us} µs"), |time| time.to_string())
}

fn date_of(day: i32) -> Date {
    let time = Timestamp::from_second(i64::from(day) * 86_400);
    time.map_or(if day < 0 { Date::MIN } else { Date::MAX }, |time| time.to_zoned(TimeZone::UTC).date())
}

fn days_of(date: Date) -> i32 {
    let time = date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp().as_second());
    time.map_or(0, |second| i32::try_from(second.div_euclid(86_400)).unwrap_or(0))
}
