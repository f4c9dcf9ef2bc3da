//! Months, counted from January 1970, and the UTC days and months of instants. A file of the ledger holds one month.
//!
//! Law: every instant has a month. An instant before 1970 or after 9999, from a wrong clock, counts as the first or the
//! last one.

use jiff::SignedDuration;
use jiff::civil::{Date, date};

use crate::DAY_US;

/// A month, counted from January 1970.
pub type Month = i32;

/// December 9999.
const LAST: Month = (9999 - 1970) * 12 + 11;

pub(crate) const FIRST_DAY: Date = date(1970, 1, 1);

/// Returns the UTC day of an instant, in days since 1970-01-01.
pub fn day(us: i64) -> i32 {
    // An instant is at most 106,751,991 days away.
    i32::try_from(us.div_euclid(DAY_US)).unwrap_or(i32::MAX)
}

/// Returns the month of a day.
pub fn of_day(day: i32) -> Month {
    let date = FIRST_DAY.saturating_add(SignedDuration::from_hours(24 * i64::from(day.max(0))));
    (Month::from(date.year()) - 1970) * 12 + Month::from(date.month()) - 1
}

/// Returns the UTC month of an instant.
pub fn of(us: i64) -> Month {
    of_day(day(us))
}

/// Returns the first instant of a UTC month, microseconds since 1970. A month after the last one begins at the last
/// one's end.
pub fn begin_us(month: Month) -> i64 {
    i64::from(first_day(month)) * DAY_US
}

/// Returns the first day of a month. A month after the last one begins at the last one's end.
pub fn first_day(month: Month) -> i32 {
    let month = month.clamp(0, LAST + 1);
    let (year, of_year) = (1970 + month / 12, 1 + month % 12);
    let date = i16::try_from(year).ok().zip(i8::try_from(of_year).ok());
    let days = match date.map(|(year, month)| Date::new(year, month, 1)) {
        Some(Ok(date)) => date.duration_since(FIRST_DAY).as_hours() / 24,
        _ => Date::MAX.duration_since(FIRST_DAY).as_hours() / 24 + 1,
    };
    // At most the days of 8,030 years.
    i32::try_from(days).unwrap_or(i32::MAX)
}

/// Returns the name of a month: `2026-10`.
pub fn name(month: Month) -> String {
    format!("{:04}-{:02}", 1970 + month.div_euclid(12), month.rem_euclid(12) + 1)
}

/// Reads a name as [`name`] writes it, and no other form.
pub fn read(name: &str) -> Option<Month> {
    let (year, month) = name.split_once('-')?;
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|c| c.is_ascii_digit());
    if !digits(year, 4) || !digits(month, 2) {
        return None;
    }
    let (year, month): (Month, Month) = (year.parse().ok()?, month.parse().ok()?);
    (year >= 1970 && (1..=12).contains(&month)).then(|| (year - 1970) * 12 + month - 1)
}

#[cfg(test)]
mod tests {
    use super::{LAST, begin_us, name, of, read};
    use crate::DAY_US;

    #[test]
    fn instants_names_and_numbers() {
        for (us, month, written) in [
            (0, 0, "1970-01"),
            (31 * DAY_US - 1, 0, "1970-01"),
            (31 * DAY_US, 1, "1970-02"),
            (951_782_400_000_000, 361, "2000-02"), // the leap day
            (1_793_491_199_999_999, 681, "2026-10"),
            (1_793_491_200_000_000, 682, "2026-11"),
        ] {
            assert_eq!((of(us), name(month).as_str(), read(written)), (month, written, Some(month)));
        }
    }

    #[test]
    fn month_begins_where_the_last_ends() {
        for month in 0..=LAST {
            let begin = begin_us(month);
            assert_eq!((of(begin), of(begin - 1)), (month, (month - 1).max(0)));
        }
        assert_eq!(of(begin_us(LAST + 1) - 1), LAST);
        assert_eq!(begin_us(LAST + 1) - begin_us(LAST), 31 * DAY_US);
    }

    #[test]
    fn every_instant_has_a_month() {
        assert_eq!((of(i64::MIN), name(of(i64::MAX)).as_str()), (0, "9999-12"));
        for text in ["", "2026", "2026-13", "2026-00", "1969-12", "2026-1", "+026-10", "2026-10-01", "x"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
