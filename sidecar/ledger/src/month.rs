//! Months of UTC, counted from January 1970: what a file of the ledger holds and what is closed.
//!
//! Law: every instant has a month. What a clock says that is out of its mind counts as the first month or
//! as the last one that a name of four digits can say.

use crate::report::source::{DAY_US, Month};

/// December 9999.
const LAST: Month = (9999 - 1970) * 12 + 11;

/// The day of an instant: days since 1970-01-01.
pub fn day(us: i64) -> i32 {
    i32::try_from(us.div_euclid(DAY_US)).unwrap_or(if us < 0 { i32::MIN } else { i32::MAX })
}

/// The month of a day.
pub fn of_day(day: i32) -> Month {
    // Howard Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so that the
    // leap day is their last.
    let shifted = i64::from(day) + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let months = (year_of_era + era * 400) * 12 + from_march + 2 - 1970 * 12;
    Month::try_from(months.clamp(0, i64::from(LAST))).unwrap_or(LAST)
}

/// The month of an instant.
pub fn of(us: i64) -> Month {
    of_day(day(us))
}

/// The first instant of a month, microseconds since 1970.
pub fn begin_us(month: Month) -> i64 {
    let from_march = i64::from(month) + 1970 * 12 - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) * DAY_US
}

/// How it is written: `2026-10`.
pub fn name(month: Month) -> String {
    format!("{:04}-{:02}", 1970 + month.div_euclid(12), month.rem_euclid(12) + 1)
}

/// Reads what [`name`] writes, and nothing else.
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
    use super::{begin_us, name, of, read};
    use crate::report::source::DAY_US;

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
    fn a_month_begins_where_the_one_before_ends() {
        for month in 0..12_000 {
            let begin = begin_us(month);
            assert_eq!((of(begin), of(begin - 1)), (month, (month - 1).max(0)));
        }
    }

    #[test]
    fn any_instant_has_a_month_and_not_any_text() {
        assert_eq!((of(i64::MIN), name(of(i64::MAX)).as_str()), (0, "9999-12"));
        for text in ["", "2026", "2026-13", "2026-00", "1969-12", "2026-1", "+026-10", "2026-10-01", "x"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
