//! Instants in files and commands: an RFC 3339 date, which is its midnight in UTC, or a date and time
//! with an offset.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Parses an instant into microseconds since 1970.
pub fn read(text: &str) -> Option<i64> {
    if text.len() == DATE {
        let date: Date = text.parse().ok()?;
        return Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond());
    }
    let time: Timestamp = text.parse().ok()?;
    Some(time.as_microsecond())
}

/// Formats an instant: a midnight in UTC as its date alone.
pub fn written(at_us: i64) -> String {
    let Ok(time) = Timestamp::from_microsecond(at_us) else { return at_us.to_string() };
    match at_us.rem_euclid(DAY_US) {
        0 => time.to_zoned(TimeZone::UTC).date().to_string(),
        _ => time.to_string(),
    }
}

/// Length of a date in characters.
const DATE: usize = "2026-11-21".len();

const DAY_US: i64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::{read, written};

    #[test]
    fn only_dates_and_offset_times_are_read() {
        for (text, at, again) in [
            ("1970-01-01", Some(0), "1970-01-01"),
            ("2026-11-21", Some(1_795_219_200_000_000), "2026-11-21"),
            ("2026-11-21T10:00:00Z", Some(1_795_255_200_000_000), "2026-11-21T10:00:00Z"),
            ("2026-11-21T12:00:00+02:00", Some(1_795_255_200_000_000), "2026-11-21T10:00:00Z"),
            ("2026-11-21T10:00:00", None, ""),
            ("2026-02-30", None, ""),
            ("21.11.2026", None, ""),
            ("2026-11", None, ""),
            ("yesterday", None, ""),
        ] {
            assert_eq!(read(text), at, "{text}");
            if let Some(at) = at {
                assert_eq!(written(at), again, "{text}");
            }
        }
    }
}
