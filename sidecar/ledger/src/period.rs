//! Days, weeks and times as text. Days are those of a ledger's calendar; times are written in UTC.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::source::Month;
use crate::{Calendar, month};

/// A written time: a month (`2026-10`), a day (`2026-10-05`) or an instant (RFC 3339).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// The beginning of a month.
    Month(Month),
    /// The beginning of a day, in days since 1970-01-01.
    Day(i32),
    /// An instant, microseconds since 1970.
    Instant(i64),
}

impl Time {
    /// Reads a time.
    ///
    /// # Errors
    /// If the text is not a time; the message names the forms.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(month) = month::read(text) {
            return Ok(Self::Month(month));
        }
        if let Ok(date) = text.parse::<Date>()
            && text.len() == "2026-10-05".len()
        {
            return Ok(Self::Day(days_of(date)));
        }
        text.parse::<Timestamp>().map(|at| Self::Instant(at.as_microsecond())).map_err(|_| {
            format!(
                "`{}` is not a time; write a month (2026-10), a day (2026-10-05) or a time in UTC (2026-10-05T12:00:00Z)",
                text.escape_debug()
            )
        })
    }

    /// Returns the instant by a calendar, microseconds since 1970.
    pub fn instant_us(self, calendar: &Calendar) -> i64 {
        match self {
            Self::Month(month) => calendar.month_begin_us(month),
            Self::Day(day) => calendar.begin_us(day),
            Self::Instant(us) => us,
        }
    }
}

/// Returns the instant of a written time, microseconds since 1970, with months and days of UTC.
///
/// # Errors
/// If the text is not a [`Time`].
pub fn instant(text: &str) -> Result<i64, String> {
    Time::read(text).map(|time| time.instant_us(&Calendar::default()))
}

/// Returns a day as `2026-10-05`.
pub fn day(day: i32) -> String {
    date_of(day).to_string()
}

/// Returns the week of a day by ISO 8601, as `2026-W41`.
pub fn week(day: i32) -> String {
    let week = date_of(day).iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

/// Returns an instant as `2026-10-05T12:00:00Z`, in whole seconds.
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

#[cfg(test)]
mod tests {
    use super::{Time, day, instant, time, week};
    use crate::source::DAY_US;
    use crate::{Calendar, Zone};

    #[test]
    fn written_times_are_read() {
        for (text, us) in [
            ("1970-01", 0),
            ("1970-02", 31 * DAY_US),
            ("1970-01-02", DAY_US),
            ("2024-02-29", 19_782 * DAY_US),
            ("1970-01-01T00:00:01Z", 1_000_000),
            ("1970-01-01T01:00:00.000001+01:00", 1),
        ] {
            assert_eq!(instant(text), Ok(us), "{text}");
        }
        for text in ["", "2026", "2026-13", "2026-02-30", "26-1-1", "20261005", "2026-10-05T12:00:00", "now"]
        {
            assert!(instant(text).is_err_and(|error| error.contains("2026-10-05")), "{text}");
        }
        let weeks = [0, 3, 4, 19_722, 19_723].map(week);
        assert_eq!(weeks, ["1970-W01", "1970-W01", "1970-W02", "2023-W52", "2024-W01"]);
        assert_eq!((day(19_782).as_str(), time(-1).as_str()), ("2024-02-29", "1969-12-31T23:59:59Z"));
    }

    #[test]
    fn months_and_days_are_those_of_the_calendar() {
        let calendar = Calendar::of(Zone::named("Europe/Berlin").unwrap());
        for (text, expected) in [
            ("2026-11", "2026-10-31T23:00:00Z"),
            ("2026-10-05", "2026-10-04T22:00:00Z"),
            ("2026-10-05T12:00:00Z", "2026-10-05T12:00:00Z"),
        ] {
            assert_eq!(time(Time::read(text).unwrap().instant_us(&calendar)), expected);
        }
    }

    #[test]
    fn days_beyond_all_dates_are_the_first_and_the_last() {
        assert_eq!([i32::MIN, i32::MAX].map(day), ["-009999-01-01", "9999-12-31"]);
    }
}
