//! Periods of days by the ledger's calendar: a day, a week from Monday, a month, or the thirty days up to today.
//! A charge belongs to the day on which its exchange ended.

use calendar::{Calendar, month};
use jiff::civil::{Date, date};
use jiff::{Timestamp, ToSpan};

/// The period of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Period {
    /// A day.
    Day,
    /// Monday to Sunday, as in ISO 8601.
    Week,
    /// A calendar month.
    Month,
    /// Today and the 29 days before.
    Rolling,
}

/// The days of a period, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first day.
    pub start: i32,
    /// The day after the last.
    pub end: i32,
}

impl Period {
    /// Every period.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Rolling];

    /// Returns the label value, which is also the value in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Rolling => "30d",
        }
    }

    /// Returns the period that contains a day.
    pub fn span(self, day: i32) -> Span {
        let day = day.clamp(0, LAST_DAY);
        match self {
            Self::Day => Span { start: day, end: day + 1 },
            Self::Week => {
                // Day 0 was a Thursday.
                let start = day - (day + 3) % 7;
                Span { start, end: start + 7 }
            }
            Self::Month => {
                let month = month::of_day(day);
                Span { start: month::first_day(month), end: month::first_day(month + 1) }
            }
            Self::Rolling => Span { start: day - ROLLING_DAYS + 1, end: day + 1 },
        }
    }

    /// Returns the period before the one that contains a day; `None` for the rolling period, which always includes today.
    pub fn before(self, day: i32) -> Option<Span> {
        match self {
            Self::Rolling => None,
            _ => Some(self.span(self.span(day).start - 1)),
        }
    }
}

impl Span {
    /// Returns the start of its first day and the end of its last one by a calendar, microseconds since 1970-01-01.
    pub(crate) fn instants_us(self, calendar: &Calendar) -> (i64, i64) {
        (calendar.begin_us(self.start), calendar.begin_us(self.end))
    }

    /// Returns its first day, as `2026-11-01`.
    pub fn start_date(self) -> String {
        date_of(self.start).to_string()
    }
}

/// Returns the day of a time in microseconds since 1970-01-01. Earlier times, and times after 9999-12-30, are clamped
/// to the first and the last day.
pub fn day_of(calendar: &Calendar, at_us: i64) -> i32 {
    calendar.day(at_us).clamp(0, LAST_DAY)
}

/// Parses a date; `None` outside the range of [`day_of`].
pub(crate) fn day_named(text: &str) -> Option<i32> {
    let day = number_of(text.parse().ok()?);
    (0..=LAST_DAY).contains(&day).then_some(day)
}

/// Formats an instant, microseconds since 1970-01-01, by RFC 3339. Later instants than jiff's last one, on 9999-12-30,
/// are clamped to it.
pub(crate) fn time(us: i64) -> String {
    Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX).to_string()
}

fn date_of(day: i32) -> Date {
    EPOCH.checked_add(day.days()).unwrap_or(Date::MAX)
}

fn number_of(day: Date) -> i32 {
    (day - EPOCH).get_days()
}

const EPOCH: Date = date(1970, 1, 1);

/// 9999-12-30: jiff's last date is one day later, and is the end of this day's period.
const LAST_DAY: i32 = 2_932_895;

/// Days in the rolling period.
pub(crate) const ROLLING_DAYS: i32 = 30;

/// Seconds in a day; computer clocks have no leap seconds.
pub(crate) const DAY_S: i64 = 86_400;

#[cfg(test)]
mod tests {
    use calendar::DAY_US;

    use super::*;

    fn span(period: Period, day: &str) -> (String, String) {
        let span = period.span(day_named(day).unwrap());
        (date_of(span.start).to_string(), date_of(span.end).to_string())
    }

    #[test]
    fn days_map_to_the_expected_periods() {
        for (period, day, start, end) in [
            (Period::Day, "2026-11-21", "2026-11-21", "2026-11-22"),
            (Period::Day, "1970-01-01", "1970-01-01", "1970-01-02"),
            (Period::Week, "2026-11-21", "2026-11-16", "2026-11-23"),
            (Period::Week, "2026-11-23", "2026-11-23", "2026-11-30"),
            (Period::Week, "2026-12-31", "2026-12-28", "2027-01-04"),
            (Period::Month, "2026-11-30", "2026-11-01", "2026-12-01"),
            (Period::Month, "2026-12-31", "2026-12-01", "2027-01-01"),
            (Period::Month, "2028-02-29", "2028-02-01", "2028-03-01"),
            (Period::Month, "2027-02-28", "2027-02-01", "2027-03-01"),
            (Period::Rolling, "2026-11-30", "2026-11-01", "2026-12-01"),
            (Period::Rolling, "2027-03-01", "2027-01-31", "2027-03-02"),
        ] {
            assert_eq!(span(period, day), (start.to_owned(), end.to_owned()), "{period:?} {day}");
        }
    }

    #[test]
    fn periods_contain_their_days_and_are_contiguous() {
        for day in (0..80_000).chain(LAST_DAY - 80..=LAST_DAY) {
            for period in Period::ALL {
                let span = period.span(day);
                assert!(span.start <= day && day < span.end, "{period:?} {day}");
                if let Some(before) = period.before(day).filter(|before| before.start > 0) {
                    assert_eq!(before.end, span.start, "{period:?} {day}");
                }
            }
        }
    }

    #[test]
    fn out_of_range_times_are_clamped() {
        let utc = Calendar::default();
        let days = [i64::MIN, -1, DAY_US - 1, DAY_US, i64::MAX].map(|us| day_of(&utc, us));
        assert_eq!(days, [0, 0, 0, 1, LAST_DAY]);
        assert_eq!(time(Period::Month.span(LAST_DAY).instants_us(&utc).1), "9999-12-30T22:00:00.999999999Z");
    }
}
