//! A time zone of the IANA database, and its days.
//!
//! Law: a day begins with the first instant that has its date or a later one. So an hour that is repeated after
//! midnight belongs to the new day, and a date that the zone skips is a day without an instant.

use std::fmt;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Zoned};

use crate::{DAY_US, month};

/// A time zone.
#[derive(Clone, Debug, Default)]
pub struct Zone(Option<TimeZone>);

/// The error of a name that is not that of a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {}", Self::REMEDY)]
pub struct UnknownZone {
    /// The error, without the remedy.
    pub problem: String,
}

impl UnknownZone {
    /// The way to write a name.
    pub const REMEDY: &str = "write an IANA name such as Europe/Berlin, or UTC";
}

/// The bundled zones, and no others: with another database, a day of a report could begin at another instant than one
/// of the proxy.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The name of UTC.
const UTC: &str = "UTC";

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(None);

    /// Returns the zone of an IANA name, such as `Europe/Berlin`, in upper or lower case.
    ///
    /// # Errors
    /// If there is no such zone.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        if [UTC, "Etc/UTC"].iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
            return Ok(Self::UTC);
        }
        let zone = ZONES.get(name).ok().filter(|zone| zone.iana_name().is_some());
        zone.map(|zone| Self(Some(zone))).ok_or_else(|| UnknownZone {
            problem: format!("there is no time zone `{}`", name.escape_debug()),
        })
    }

    /// Returns the IANA name.
    pub fn name(&self) -> &str {
        self.0.as_ref().and_then(TimeZone::iana_name).unwrap_or(UTC)
    }

    /// Returns true if it is UTC.
    pub fn is_utc(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the day of an instant, in days since 1970-01-01.
    pub(crate) fn day(&self, us: i64) -> i32 {
        let Some(local) = self.local(us) else { return month::day(us) };
        let day = number_of(local.date());
        // In a zone that sets its clock back just after midnight, the previous date comes again.
        if self.begin_us(day.saturating_add(1)) <= us { day + 1 } else { day }
    }

    /// Returns the first instant of a day, microseconds since 1970.
    pub(crate) fn begin_us(&self, day: i32) -> i64 {
        self.start(day)
            .map_or(i64::from(day).saturating_mul(DAY_US), |start| start.timestamp().as_microsecond())
    }

    fn local(&self, us: i64) -> Option<Zoned> {
        let zone = self.0.as_ref()?;
        let at = Timestamp::from_microsecond(us).ok()?;
        // The last dates that can be written have no next day.
        (us.abs() < FAR_US).then(|| at.to_zoned(zone.clone()))
    }

    fn start(&self, day: i32) -> Option<Zoned> {
        let zone = self.0.as_ref().filter(|_| i64::from(day).abs() < FAR_US / DAY_US)?;
        let date = month::FIRST_DAY.checked_add(SignedDuration::from_hours(24 * i64::from(day))).ok()?;
        date.at(12, 0, 0, 0).to_zoned(zone.clone()).ok()?.start_of_day().ok()
    }
}

/// Some days before the end of the year 9999. Beyond, a clock is wrong, and days are those of UTC.
const FAR_US: i64 = 253_402_300_800_000_000 - 10 * DAY_US;

fn number_of(date: Date) -> i32 {
    i32::try_from(date.duration_since(month::FIRST_DAY).as_hours() / 24).unwrap_or(0)
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Zone;
    use crate::DAY_US;

    #[test]
    fn names_are_those_of_the_database() {
        let berlin = Zone::named("europe/berlin").unwrap();
        assert_eq!((berlin.name(), berlin.is_utc()), ("Europe/Berlin", false));
        for utc in ["UTC", "utc", "Etc/UTC"] {
            assert_eq!(Zone::named(utc), Ok(Zone::UTC), "{utc}");
        }
        for none in ["", "Berlin", "+02:00", "Europe/Berlin ", "../etc/passwd", "Etc/Unknown"] {
            assert!(Zone::named(none).is_err_and(|error| error.to_string().contains("IANA name")), "{none}");
        }
    }

    /// Returns the day of a date, and the begin and the length of the day in hours and minutes.
    fn day(zone: &str, date: &str) -> (String, i64) {
        let zone = Zone::named(zone).unwrap();
        let day = super::number_of(date.parse().unwrap());
        let (begin_us, end_us) = (zone.begin_us(day), zone.begin_us(day + 1));
        let begin = jiff::Timestamp::from_microsecond(begin_us).unwrap();
        assert_eq!((zone.day(begin_us - 1) < day, zone.day(end_us - 1) <= day), (true, true));
        (begin.to_string(), (end_us - begin_us) / 60_000_000)
    }

    #[test]
    fn days_have_the_lengths_of_their_zone() {
        for (zone, date, begin, minutes) in [
            ("UTC", "2026-10-25", "2026-10-25T00:00:00Z", 24 * 60),
            ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", 25 * 60),
            ("Europe/Berlin", "2027-03-28", "2027-03-27T23:00:00Z", 23 * 60),
            ("Asia/Kolkata", "2026-11-01", "2026-10-31T18:30:00Z", 24 * 60),
            // Midnight does not exist: the clock is set from 00:00 to 01:00.
            ("America/Sao_Paulo", "2015-10-18", "2015-10-18T03:00:00Z", 23 * 60),
            // The clock is set back at midnight: 23:00 to 24:00 comes twice.
            ("America/Sao_Paulo", "2015-02-21", "2015-02-21T02:00:00Z", 25 * 60),
            ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z", 24 * 60),
            ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", 24 * 60),
            // The clock is set back at 00:01: the new month has begun.
            ("America/St_Johns", "2009-11-01", "2009-11-01T02:30:00Z", 25 * 60),
        ] {
            assert_eq!(day(zone, date), (begin.to_owned(), minutes), "{zone} {date}");
        }
    }

    #[test]
    fn skipped_date_is_a_day_without_an_instant() {
        let zone = Zone::named("Pacific/Apia").unwrap();
        let day = super::number_of("2011-12-30".parse().unwrap());
        assert_eq!(zone.begin_us(day), zone.begin_us(day + 1));
        assert_eq!(zone.day(zone.begin_us(day)), day + 1);
        assert_eq!(zone.day(zone.begin_us(day) - 1), day - 1);
    }

    /// Around every change of every zone's clock since 1970.
    #[test]
    fn days_follow_one_another() {
        let mut changes = 0;
        for name in super::ZONES.available() {
            let Ok(zone) = Zone::named(name.as_str()) else { continue };
            let Some(rules) = &zone.0 else { continue };
            let since = jiff::Timestamp::UNIX_EPOCH;
            for change in
                rules.following(since).take_while(|change| change.timestamp().as_second() < 2_000_000_000)
            {
                let day = zone.day(change.timestamp().as_microsecond());
                for day in day - 1..=day + 1 {
                    let (begin_us, end_us) = (zone.begin_us(day), zone.begin_us(day + 1));
                    assert!(begin_us <= end_us && end_us <= begin_us + 2 * DAY_US, "{name} {day}");
                    let days = [begin_us, end_us - 1].map(|us| zone.day(us));
                    let expected = if begin_us == end_us { [day + 1, day - 1] } else { [day; 2] };
                    assert_eq!(days, expected, "{name} {day}");
                }
                changes += 1;
            }
        }
        assert!(changes > 10_000, "{changes}");
    }

    #[test]
    fn every_instant_has_a_day() {
        let zone = Zone::named("Pacific/Kiritimati").unwrap();
        for us in [i64::MIN, i64::MAX, super::FAR_US, super::FAR_US - 1, -super::FAR_US] {
            assert!(zone.day(us).abs_diff(crate::month::day(us)) <= 1, "{us}");
        }
    }
}
