//! What was spent, day by day. Whatever order charges come in and whatever the clock did, a sum is
//! that of its days.

/// The days of one tenant, or of all who share a purse; in their order, those with something only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spend {
    days: Vec<Day>,
}

/// One day's sums, pico-units.
#[derive(Clone, Copy, Debug)]
struct Day {
    day: i32,
    /// What this process charged or found in its own ledger.
    own: i128,
    /// What the central store has of ours, if it has anything of that day.
    own_there: Option<i128>,
    /// What it has of all others.
    others: i128,
}

impl Day {
    /// Ours and others'. Where our own ledger was lost, the central store knows more of us than we.
    fn sum(&self) -> i128 {
        self.own.max(self.own_there.unwrap_or(self.own)).saturating_add(self.others)
    }
}

impl Spend {
    /// Adds to a day; a correction is negative.
    pub(crate) fn add(&mut self, day: i32, pico: i128) {
        let day = self.day(day);
        day.own = day.own.saturating_add(pico);
    }

    /// Adds to what the central store has of a day.
    pub(crate) fn observe(&mut self, day: i32, ours: i128, others: i128) {
        let day = self.day(day);
        day.own_there = Some(day.own_there.unwrap_or(0).saturating_add(ours));
        day.others = day.others.saturating_add(others);
    }

    /// Forgets what the central store had.
    pub(crate) fn forget_observed(&mut self) {
        for day in &mut self.days {
            (day.own_there, day.others) = (None, 0);
        }
    }

    /// The sum of the days from `start` until before `end`.
    pub(crate) fn between(&self, start: i32, end: i32) -> i128 {
        let days = self.days.iter().filter(|day| (start..end).contains(&day.day));
        days.fold(0, |sum, day| sum.saturating_add(day.sum()))
    }

    /// The first day with something, from `start` until before `end`.
    pub(crate) fn first(&self, start: i32, end: i32) -> Option<i32> {
        let mut spent = self.days.iter().filter(|day| day.sum() != 0).map(|day| day.day);
        spent.find(|day| (start..end).contains(day))
    }

    /// The last day with something.
    pub(crate) fn last(&self) -> Option<i32> {
        self.days.last().map(|day| day.day)
    }

    fn day(&mut self, wanted: i32) -> &mut Day {
        let at = match self.days.binary_search_by_key(&wanted, |day| day.day) {
            Ok(at) => at,
            Err(at) if self.days.len() < DAYS => {
                self.days.insert(at, Day { day: wanted, own: 0, own_there: None, others: 0 });
                at
            }
            // The oldest goes; if that is the one wanted, it takes the place of the next.
            Err(at) => {
                let at = at.saturating_sub(1);
                self.days.remove(0);
                self.days.insert(at, Day { day: wanted, own: 0, own_there: None, others: 0 });
                at
            }
        };
        &mut self.days[at]
    }
}

/// Days kept: this month and the one before, and as many again for days that only a wrong clock
/// has seen. 64 bytes each.
const DAYS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_days_are_given_up() {
        let mut spend = Spend::default();
        (0..200).for_each(|day| spend.add(day, 1));
        assert_eq!((spend.days.len(), spend.first(0, 200), spend.between(0, 200)), (DAYS, Some(72), 128));
    }
}
