//! Spend by day. A sum depends only on the days, not on the order of charges or on the
//! clock.

/// The days of one tenant, or of all who share a limit: ordered, and only those with spend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spend {
    days: Vec<Day>,
}

/// One day's sums, pico-units.
#[derive(Clone, Copy, Debug)]
struct Day {
    day: i32,
    /// From this process's charges and its own ledger.
    own: i128,
    /// This process's part in the central store, if the store has any of that day.
    own_stored: Option<i128>,
    /// The part of all others in the central store.
    others: i128,
}

impl Day {
    /// Returns the total. If the process's own ledger was lost, the central store has more of its part.
    fn sum(&self) -> i128 {
        self.own.max(self.own_stored.unwrap_or(self.own)).saturating_add(self.others)
    }
}

impl Spend {
    /// Adds to a day; a correction is negative.
    pub(crate) fn add(&mut self, day: i32, pico: i128) {
        let day = self.day(day);
        day.own = day.own.saturating_add(pico);
    }

    /// Adds to a day's totals of the central store.
    pub(crate) fn observe(&mut self, day: i32, ours: i128, others: i128) {
        let day = self.day(day);
        day.own_stored = Some(day.own_stored.unwrap_or(0).saturating_add(ours));
        day.others = day.others.saturating_add(others);
    }

    /// Forgets the totals of the central store.
    pub(crate) fn forget_observed(&mut self) {
        for day in &mut self.days {
            (day.own_stored, day.others) = (None, 0);
        }
    }

    /// Returns the sum of the days from `start` to before `end`.
    pub(crate) fn between(&self, start: i32, end: i32) -> i128 {
        let days = self.days.iter().filter(|day| (start..end).contains(&day.day));
        days.fold(0, |sum, day| sum.saturating_add(day.sum()))
    }

    /// Returns the first day with spend from `start` to before `end`.
    pub(crate) fn first(&self, start: i32, end: i32) -> Option<i32> {
        let mut spent = self.days.iter().filter(|day| day.sum() != 0).map(|day| day.day);
        spent.find(|day| (start..end).contains(day))
    }

    /// Returns the last day with an entry.
    pub(crate) fn last(&self) -> Option<i32> {
        self.days.last().map(|day| day.day)
    }

    fn day(&mut self, wanted: i32) -> &mut Day {
        let at = match self.days.binary_search_by_key(&wanted, |day| day.day) {
            Ok(at) => at,
            Err(at) if self.days.len() < MAX_DAYS => {
                self.days.insert(at, Day { day: wanted, own: 0, own_stored: None, others: 0 });
                at
            }
            // The oldest day is dropped; if the new day is older, it takes that place.
            Err(at) => {
                let at = at.saturating_sub(1);
                self.days.remove(0);
                self.days.insert(at, Day { day: wanted, own: 0, own_stored: None, others: 0 });
                at
            }
        };
        &mut self.days[at]
    }
}

/// Maximum number of days: this month and the previous one, and as many again for days that only a wrong clock
/// has produced. 64 bytes each.
const MAX_DAYS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_days_are_dropped() {
        let mut spend = Spend::default();
        (0..200).for_each(|day| spend.add(day, 1));
        assert_eq!((spend.days.len(), spend.first(0, 200), spend.between(0, 200)), (MAX_DAYS, Some(72), 128));
    }
}
