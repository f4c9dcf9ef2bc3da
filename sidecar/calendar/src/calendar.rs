//! The calendar of a ledger: its zones, each from a month on.
//!
//! Where the zone changes, the first day of the month begins where the month before ends, whatever date the new zone
//! has then. So that day may last from 0 to 50 hours.

use std::fmt;
use std::sync::Arc;

use crate::month::{self, Month};
use crate::zone::{UnknownZone, Zone};

/// The days and months of a ledger. A clone shares its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar(Arc<[Span]>);

/// The months of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    /// The first month. The first span has all earlier months, too.
    first: Month,
    /// The first instant of that month.
    begin_us: i64,
    zone: Zone,
}

/// The error of a text that is not that of a calendar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// A zone is not known.
    #[error("{0}")]
    Zone(#[from] UnknownZone),
    /// A part has no month.
    #[error("`{0}` names no month")]
    NoMonth(String),
    /// The month of a part is not after that of the part before.
    #[error("`{0}` does not begin with a later month")]
    Order(String),
}

impl Default for Calendar {
    fn default() -> Self {
        Self::of(Zone::UTC)
    }
}

impl Calendar {
    /// Returns the calendar of a zone that never changes.
    pub fn of(zone: Zone) -> Self {
        Self([Span { first: Month::MIN, begin_us: i64::MIN, zone }].into())
    }

    /// Returns the calendar of zones, each with its first month; `None` is the zone of all earlier ones.
    pub fn with_zones(zones: impl IntoIterator<Item = (Option<Month>, Zone)>) -> Self {
        zones.into_iter().fold(Self::default(), |calendar, (first, zone)| match first {
            None => Self::of(zone),
            Some(first) => calendar.with(first, zone),
        })
    }

    /// Returns the calendar with another zone from the month after `current` on, in place of the changes that were
    /// planned for later months.
    #[must_use]
    pub fn changed(&self, zone: Zone, current: Month) -> Self {
        let begun = self.0.iter().filter(|span| span.first <= current);
        let calendar = Self(begun.cloned().collect());
        match *calendar.zone(current) == zone {
            true => calendar,
            false => calendar.with(current.saturating_add(1), zone),
        }
    }

    fn with(&self, first: Month, zone: Zone) -> Self {
        let begin_us = self.month_begin_us(first);
        Self(self.0.iter().cloned().chain([Span { first, begin_us, zone }]).collect())
    }

    /// Reads a calendar as its `Display` writes it: `UTC`, or `UTC, from 2026-12 on Europe/Berlin`.
    ///
    /// # Errors
    /// If the text is not a calendar, or a zone is not known.
    pub fn read(text: &str) -> Result<Self, CalendarError> {
        let mut parts = text.split(FROM);
        let mut calendar = Self::of(Zone::named(parts.next().unwrap_or_default())?);
        for part in parts {
            let (first, name) = part.split_once(ON).ok_or_else(|| CalendarError::NoMonth(part.to_owned()))?;
            let first = month::read(first).filter(|first| *first > calendar.last().first);
            let first = first.ok_or_else(|| CalendarError::Order(part.to_owned()))?;
            calendar = calendar.with(first, Zone::named(name)?);
        }
        Ok(calendar)
    }

    /// Returns true if all days are those of UTC.
    pub fn is_utc(&self) -> bool {
        self.0.iter().all(|span| span.zone.is_utc())
    }

    /// Returns the zone of a month.
    pub fn zone(&self, month: Month) -> &Zone {
        let at = self.0.partition_point(|span| span.first <= month);
        &self.0[at.saturating_sub(1)].zone
    }

    /// Returns the zone of the last months, which has no end.
    pub fn last_zone(&self) -> &Zone {
        &self.last().zone
    }

    /// Returns the zones, each with its first month; `None` for the first.
    pub fn zones(&self) -> impl Iterator<Item = (Option<Month>, &Zone)> {
        self.0.iter().map(|span| (Some(span.first).filter(|first| *first > Month::MIN), &span.zone))
    }

    /// Returns the day of an instant, in days since 1970-01-01.
    pub fn day(&self, us: i64) -> i32 {
        let at = self.0.partition_point(|span| span.begin_us <= us);
        let span = &self.0[at.saturating_sub(1)];
        span.zone.day(us).max(span.first_day())
    }

    /// Returns the month of an instant.
    pub fn month(&self, us: i64) -> Month {
        month::of_day(self.day(us))
    }

    /// Returns the first instant of a day, microseconds since 1970; of a day that is skipped, the next one's.
    pub fn begin_us(&self, day: i32) -> i64 {
        let at = self.0.partition_point(|span| span.first_day() <= day);
        let span = &self.0[at.saturating_sub(1)];
        match day == span.first_day() {
            true => span.begin_us,
            false => span.zone.begin_us(day).max(span.begin_us),
        }
    }

    /// Returns the first instant of a month, microseconds since 1970. A month after the last one begins at the end of
    /// that.
    pub fn month_begin_us(&self, month: Month) -> i64 {
        self.begin_us(month::first_day(month))
    }

    /// Returns the first of the days that end after an instant, or begin and end at it; and true if the day begins
    /// there.
    pub fn day_from(&self, us: i64) -> (i32, bool) {
        let mut day = self.day(us);
        let begins = self.begin_us(day) == us;
        // Skipped days before it begin at the same instant.
        while begins && us > i64::MIN && self.begin_us(day - 1) == us {
            day -= 1;
        }
        (day, begins)
    }

    fn last(&self) -> &Span {
        self.0.last().unwrap_or_else(|| unreachable!("a calendar has a zone"))
    }
}

impl Span {
    fn first_day(&self) -> i32 {
        if self.first == Month::MIN { i32::MIN } else { month::first_day(self.first) }
    }
}

/// The separators in a calendar's text.
const FROM: &str = ", from ";
const ON: &str = " on ";

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (first, zone) in self.zones() {
            if let Some(first) = first {
                write!(f, "{FROM}{}{ON}", month::name(first))?;
            }
            write!(f, "{zone}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chance::Chance;

    use super::Calendar;
    use crate::{DAY_US, Zone, month};

    const NOVEMBER: i32 = 682;

    fn zone(name: &str) -> Zone {
        Zone::named(name).unwrap()
    }

    #[test]
    fn calendar_of_utc_has_the_months_of_utc() {
        let calendar = Calendar::default();
        assert!(calendar.is_utc());
        let mut chance = Chance::new(1);
        for _ in 0..10_000 {
            let us = i64::try_from(chance.below(253_402_300_800_000)).unwrap() * 1_000 + 7;
            let of = month::of(us);
            assert_eq!((calendar.day(us), calendar.month(us)), (month::day(us), of));
            assert_eq!(calendar.month_begin_us(of), month::begin_us(of));
        }
        for us in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(calendar.day(us), month::day(us), "{us}");
            assert_eq!(calendar.day_from(us).0, month::day(us), "{us}");
        }
    }

    #[test]
    fn change_begins_with_the_next_month() {
        let utc = Calendar::default();
        let planned = utc.changed(zone("Europe/Berlin"), NOVEMBER - 1);
        assert_eq!(planned.to_string(), "UTC, from 2026-11 on Europe/Berlin");
        assert_eq!(planned.zone(NOVEMBER - 1), &Zone::UTC);
        assert_eq!(planned.zone(NOVEMBER), &zone("Europe/Berlin"));
        // A change that has not begun is replaced or taken back; one that has begun stays.
        assert_eq!(planned.changed(Zone::UTC, NOVEMBER - 1), utc);
        assert_eq!(
            planned.changed(zone("Asia/Tokyo"), NOVEMBER - 1).to_string(),
            "UTC, from 2026-11 on Asia/Tokyo"
        );
        assert_eq!(planned.changed(zone("Europe/Berlin"), NOVEMBER - 1), planned);
        assert_eq!(planned.changed(zone("Europe/Berlin"), NOVEMBER + 5), planned);
        let back = planned.changed(Zone::UTC, NOVEMBER);
        assert_eq!(back.to_string(), "UTC, from 2026-11 on Europe/Berlin, from 2026-12 on UTC");
        assert_eq!(Calendar::read(&back.to_string()), Ok(back));
        for text in [
            "",
            "x",
            "UTC, from 2026-12",
            "UTC, from 2026-12 on x",
            "UTC, from 2026-12 on UTC, from 2026-12 on UTC",
        ] {
            assert!(Calendar::read(text).is_err(), "{text}");
        }
    }

    /// The zones of the greatest differences, with skipped dates, and with clocks that are set at midnight.
    const ZONES: [&str; 8] = [
        "UTC",
        "Europe/Berlin",
        "Pacific/Kiritimati",
        "Pacific/Apia",
        "Pacific/Pago_Pago",
        "America/Sao_Paulo",
        "America/St_Johns",
        "Asia/Kolkata",
    ];

    /// Checks that days and months around an instant follow one another without a gap or an overlap.
    fn check(calendar: &Calendar, around_us: i64) {
        let mut chance = Chance::new(around_us.unsigned_abs());
        let mut instants: Vec<i64> = (0..60)
            .map(|_| around_us - 3 * DAY_US + i64::try_from(chance.below(6 * 86_400_000_000)).unwrap())
            .collect();
        instants.extend([around_us - 1, around_us, around_us + 1]);
        instants.sort_unstable();
        let mut before = i32::MIN;
        for us in instants {
            let day = calendar.day(us);
            assert!(before <= day, "{calendar} {us}");
            before = day;
            assert!(calendar.begin_us(day) <= us && us < calendar.begin_us(day + 1), "{calendar} {us}");
            let month = calendar.month(us);
            assert!(
                calendar.month_begin_us(month) <= us && us < calendar.month_begin_us(month + 1),
                "{calendar} {us}"
            );
            let (first, begins) = calendar.day_from(us);
            assert_eq!(begins, calendar.begin_us(day) == us);
            assert!(first <= day && calendar.begin_us(first - 1) < us, "{calendar} {us}");
        }
    }

    #[test]
    fn instants_around_changes_have_one_day_and_one_month() {
        for from in ZONES {
            for to in ZONES {
                for current in [503, 541, 542, 546, NOVEMBER] {
                    let calendar = Calendar::of(zone(from)).changed(zone(to), current);
                    let begin_us = calendar.month_begin_us(current + 1);
                    check(&calendar, begin_us);
                    assert_eq!(calendar.month(begin_us), current + 1, "{calendar}");
                    assert_eq!(calendar.month(begin_us - 1), current, "{calendar}");
                    let again = calendar.changed(zone(from), current + 1);
                    check(&again, again.month_begin_us(current + 2));
                    check(&again, again.month_begin_us(current + 1));
                }
            }
        }
    }

    #[test]
    fn months_follow_one_another_through_changes() {
        let mut calendar = Calendar::default();
        for (at, name) in ZONES.iter().enumerate() {
            calendar = calendar.changed(zone(name), 480 + 12 * i32::try_from(at).unwrap());
        }
        for month in 400..700 {
            let begin_us = calendar.month_begin_us(month);
            assert_eq!((calendar.month(begin_us - 1), calendar.month(begin_us)), (month - 1, month));
            let days = (calendar.month_begin_us(month + 1) - begin_us) / DAY_US;
            assert!((26..=32).contains(&days), "{month}: {days}");
        }
    }
}
