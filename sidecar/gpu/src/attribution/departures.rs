//! Who has left an upstream, by its load cell, and who has told so. What is known to have left and
//! is not told in time was dropped on the way, and its share is known exactly.

use std::collections::VecDeque;
use std::time::Duration;

use meter::{LoadReading, Tick};

/// One upstream's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departures {
    /// By sample, the oldest first.
    marks: VecDeque<Mark>,
    /// Told of since the last mark's reading was taken.
    later: u128,
    /// The share of all that had left when the last mark fell due: who left before comes too late.
    due: u128,
    /// The share of all that had left before anybody looked.
    origin: u128,
}

/// What comes of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is noted.
    InTime,
    /// It was given up already.
    Late,
    /// It left before anybody looked.
    Before,
}

/// What a sample saw.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Tick,
    /// Share of all that had left by then.
    gone: u128,
    /// What one exchange had been granted by then that was there from the beginning.
    share: u128,
    /// Of those since the mark before, what was told.
    told: u128,
}

impl Departures {
    /// Begins where the upstream is now.
    pub(crate) fn new(load: &LoadReading) -> Self {
        let gone = load.gone();
        Self { due: gone, origin: gone, ..Self::default() }
    }

    /// Begins anew: who has left until now left before anybody looked.
    pub(crate) fn begin(&mut self, load: &LoadReading) {
        *self = Self::new(load);
    }

    /// A sample was taken; whether anybody has left since the one before.
    pub(crate) fn mark(&mut self, at: Tick, load: &LoadReading) -> bool {
        let gone = load.gone();
        let more = gone > self.marks.back().map_or(self.due, |mark| mark.gone);
        if more {
            let told = std::mem::take(&mut self.later);
            self.marks.push_back(Mark { at, gone, share: load.share, told });
        }
        more
    }

    /// An exchange says that it left.
    pub(crate) fn tell(&mut self, entered: &LoadReading, left: &LoadReading) -> Told {
        let (share, gone) = (left.share.saturating_sub(entered.share), left.gone());
        if share == 0 {
            return Told::InTime;
        }
        if gone <= self.due {
            return if gone <= self.origin { Told::Before } else { Told::Late };
        }
        let number = self.marks.partition_point(|mark| mark.gone < gone);
        match self.marks.get_mut(number) {
            Some(mark) => mark.told += share,
            None => self.later += share,
        }
        Told::InTime
    }

    /// The next sample that was `patience` ago, and the share of those it saw leave who have not said
    /// so. Not before that is in the pools, which hold what was granted up to `covered`.
    pub(crate) fn lost(&mut self, now: Tick, patience: Duration, covered: u128) -> Option<(Tick, u128)> {
        let mark = self.marks.front().copied()?;
        if u128::from(now.since(mark.at)) < patience.as_nanos() || mark.share > covered {
            return None;
        }
        self.marks.pop_front();
        let lost = (mark.gone - self.due).saturating_sub(mark.told);
        self.due = mark.gone;
        Some((mark.at, lost))
    }
}
