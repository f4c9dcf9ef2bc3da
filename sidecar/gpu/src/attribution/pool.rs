//! What one upstream used of one device and nobody has taken yet: exchanges in flight, and those
//! whose notice is still to come.
//!
//! The law: what goes in comes out, to the unit: to the exchanges that take theirs, or as the rest
//! that was nobody's. A pool never gives more than it has.

use std::collections::VecDeque;

use meter::{LoadReading, Tick};

use super::curve::Curve;
use super::wide::mul_div;
use super::{ENERGY, Pair, TIME, added};
use crate::limits::KNOTS;

/// Parts of a nanojoule or nanosecond that the curve tells apart: 2³².
const FINE: u32 = 32;

/// A pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// The upstream's number.
    pub(crate) upstream: usize,
    /// The cell, when the device was seen first.
    began: LoadReading,
    /// When that was.
    since: Tick,
    /// What those who were in flight then had been granted before, and is not accounted for yet: it
    /// is in the share they had, and not in here.
    before: u128,
    /// Over share: energy and time, in 2⁻³² of their unit, and of how much of the share each is not
    /// known.
    curve: Curve<4>,
    /// All that was granted when it was looked at last.
    granted: u128,
    /// What was granted since the beginning and not taken yet, by those in flight too.
    share: u128,
    held: Pair,
    /// Parts of a unit that takers could not take.
    parts: Pair,
    /// Samples that saw somebody leave.
    then: VecDeque<Note>,
}

/// How it was when somebody left.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: Tick,
    /// What one exchange had been granted by then.
    until: u128,
    /// What was held, and of which share, as soon as the pool was filled until then.
    held: Option<(Pair, u128)>,
}

impl Pool {
    /// Begins where the upstream is now.
    pub(crate) fn new(upstream: usize, at: Tick, load: &LoadReading) -> Self {
        let curve = Curve::new(load.share, KNOTS);
        Self {
            upstream,
            began: *load,
            since: at,
            before: load.pending,
            curve,
            granted: load.granted,
            share: 0,
            held: [0; 2],
            parts: [0; 2],
            then: VecDeque::new(),
        }
    }

    /// When the device was seen first.
    pub(crate) fn began(&self) -> Tick {
        self.since
    }

    /// Whether an exchange had left when the device was seen first.
    pub(crate) fn began_after(&self, left: &LoadReading) -> bool {
        left.gone() <= self.began.gone() && left.at <= self.since
    }

    /// What was granted since it was looked at last.
    pub(crate) fn granted_since(&self, load: &LoadReading) -> u128 {
        load.granted.saturating_sub(self.granted)
    }

    /// The upstream used `used` since it was looked at last, of what is known.
    pub(crate) fn fill(&mut self, load: &LoadReading, used: Pair, known: [bool; 2]) {
        let granted = self.granted_since(load);
        let share = load.share.saturating_sub(self.curve.end());
        let each = used.map(|used| if granted == 0 { 0 } else { mul_div(used << FINE, share, granted) });
        let unknown = known.map(|known| if known { 0 } else { share });
        self.curve.grow(load.share, [each[ENERGY], each[TIME], unknown[ENERGY], unknown[TIME]]);
        self.granted = self.granted.max(load.granted);
        self.share += granted;
        self.held = added(self.held, used);
    }

    /// Until which share it is filled: an exchange that left by then can take what is its.
    pub(crate) fn end(&self) -> u128 {
        self.curve.end()
    }

    /// An exchange takes what it used. The rest is nobody's: parts of a unit that have become a
    /// whole one, and what is left when nobody is to come.
    pub(crate) fn take(&mut self, entered: u128, left: u128) -> Taken {
        let fine = self.curve.between(entered, left);
        let whole =
            |i: usize| entered >= self.began.share.min(left) && !self.curve.grew(entered, left, 2 + i);
        let mut taken = Taken { known: [ENERGY, TIME].map(whole), ..Taken::default() };
        for i in [ENERGY, TIME] {
            taken.used[i] = (fine[i] >> FINE).min(self.held[i]);
            self.held[i] -= taken.used[i];
            self.parts[i] += fine[i] & ((1 << FINE) - 1);
            if self.parts[i] >> FINE > 0 && self.held[i] > 0 {
                self.parts[i] -= 1 << FINE;
                self.held[i] -= 1;
                taken.rest[i] += 1;
            }
        }
        let share = self.curve.within(left).saturating_sub(self.curve.within(entered));
        taken.rest = added(taken.rest, self.without(share));
        let before = self.began.share.saturating_sub(entered);
        let lost = self.out_of_before(before);
        let (held, of) = (self.held, self.share);
        taken.rest = added(taken.rest, self.mean_of(lost, held, of));
        taken
    }

    /// Somebody has left by this sample, who may never tell.
    pub(crate) fn note(&mut self, at: Tick, load: &LoadReading) {
        self.then.push_back(Note { at, until: load.share, held: None });
        self.fill_notes();
    }

    /// Says what was held where that is known by now: a counter that is waited for, or a missing
    /// sample, leaves the pool behind the cell.
    pub(crate) fn fill_notes(&mut self) {
        let (end, now) = (self.curve.end(), (self.held, self.share));
        let unknown = self.then.iter_mut().rev().take_while(|note| note.held.is_none());
        unknown.filter(|note| note.until <= end).for_each(|note| note.held = Some(now));
    }

    /// Exchanges that had this share, and had left by the sample of `at`, will never come. What they
    /// used is known by the mean of what was held then. They may have had some of it before the
    /// device was seen: as much as that can have been is not taken from others.
    pub(crate) fn lose(&mut self, at: Tick, share: u128) -> Pair {
        let mut then = (self.held, self.share);
        while let Some(noted) = self.then.front().copied()
            && noted.at <= at
        {
            if noted.at == at
                && let Some(held) = noted.held.filter(|(_, share)| *share > 0)
            {
                then = held;
            }
            self.then.pop_front();
        }
        if at <= self.since {
            return [0; 2];
        }
        let (held, of) = then;
        let share = self.out_of_before(share);
        self.mean_of(share, held, of)
    }

    /// Takes a share from what was granted before the device was seen; what there is more of it.
    fn out_of_before(&mut self, share: u128) -> u128 {
        let before = share.min(self.before);
        self.before -= before;
        share - before
    }

    /// Takes a share at the mean of what was held of another.
    fn mean_of(&mut self, share: u128, held: Pair, of: u128) -> Pair {
        if share == 0 || of == 0 {
            return [0; 2];
        }
        let lost = [ENERGY, TIME].map(|i| mul_div(held[i], share, of).min(self.held[i]));
        self.held = [self.held[ENERGY] - lost[ENERGY], self.held[TIME] - lost[TIME]];
        added(lost, self.without(share))
    }

    /// What is in it.
    pub(crate) fn held(&self) -> Pair {
        self.held
    }

    /// This share is accounted for. The rest, if it was the last.
    fn without(&mut self, share: u128) -> Pair {
        self.share = self.share.saturating_sub(share);
        match self.share {
            0 => {
                self.parts = [0; 2];
                std::mem::take(&mut self.held)
            }
            _ => [0; 2],
        }
    }
}

/// What came out of a pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// The exchange's.
    pub(crate) used: Pair,
    /// Whether that is all it used.
    pub(crate) known: [bool; 2],
    /// Nobody's.
    pub(crate) rest: Pair,
}
