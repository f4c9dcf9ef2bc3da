//! Use of one device by one upstream that no settled exchange has claimed yet: of exchanges in flight, and of those
//! whose notice is still to come.
//!
//! The law: what is added comes out, to the unit: as the claim of an exchange, or as the unattributed
//! remainder. No claim exceeds what is held.

use std::collections::VecDeque;

use meter::{LoadReading, Tick};

use super::curve::Curve;
use super::wide::mul_div;
use super::{ENERGY, Pair, TIME, added};
use crate::limits::CURVE_MAX_POINTS;

/// Bits of the fraction of a nanojoule or nanosecond that the curve keeps.
const FRACTION_BITS: u32 = 32;

/// The unclaimed use of one upstream on one device.
#[derive(Clone, Debug)]
pub(crate) struct UnclaimedUse {
    /// The upstream's index.
    pub(crate) upstream: usize,
    /// The load cell when the device was first seen.
    first_load: LoadReading,
    /// The tick at which the device was first seen.
    first_seen: Tick,
    /// The share that exchanges then in flight had been granted earlier and that is not accounted for yet: part of
    /// their own share, but not of `share`.
    pending_before: u128,
    /// Over the share: energy and time, in 2⁻³² of their unit, and the share for which each is
    /// unknown.
    curve: Curve<4>,
    /// The total grant at the last `fill`.
    granted: u128,
    /// The share granted since the start and not accounted for yet, including that of exchanges in flight.
    share: u128,
    held: Pair,
    /// Fractions of a unit that claims could not take.
    fractions: Pair,
    /// Samples that saw exchanges end.
    exits: VecDeque<Exit>,
}

/// The state when exchanges ended.
#[derive(Clone, Copy, Debug)]
struct Exit {
    at: Tick,
    /// The share granted by then to one exchange.
    until: u128,
    /// The unclaimed use and its share, once use is known up to `until`.
    held: Option<(Pair, u128)>,
}

impl UnclaimedUse {
    /// Starts at the upstream's current state.
    pub(crate) fn new(upstream: usize, at: Tick, load: &LoadReading) -> Self {
        let curve = Curve::new(load.share, CURVE_MAX_POINTS);
        Self {
            upstream,
            first_load: *load,
            first_seen: at,
            pending_before: load.pending,
            curve,
            granted: load.granted,
            share: 0,
            held: [0; 2],
            fractions: [0; 2],
            exits: VecDeque::new(),
        }
    }

    /// Returns the tick at which the device was first seen.
    pub(crate) fn first_seen(&self) -> Tick {
        self.first_seen
    }

    /// Returns true if an exchange had ended when the device was first seen.
    pub(crate) fn had_ended_before(&self, left: &LoadReading) -> bool {
        left.released() <= self.first_load.released() && left.at <= self.first_seen
    }

    /// Returns the grant since the last `fill`.
    pub(crate) fn granted_since(&self, load: &LoadReading) -> u128 {
        load.granted.saturating_sub(self.granted)
    }

    /// Adds the upstream's use since the last `fill`, and which of energy and time are known.
    pub(crate) fn fill(&mut self, load: &LoadReading, used: Pair, known: [bool; 2]) {
        let granted = self.granted_since(load);
        let share = load.share.saturating_sub(self.curve.end());
        let each =
            used.map(|used| if granted == 0 { 0 } else { mul_div(used << FRACTION_BITS, share, granted) });
        let unknown = known.map(|known| if known { 0 } else { share });
        self.curve.grow(load.share, [each[ENERGY], each[TIME], unknown[ENERGY], unknown[TIME]]);
        self.granted = self.granted.max(load.granted);
        self.share += granted;
        self.held = added(self.held, used);
    }

    /// Returns the share up to which use is known: an exchange that ended by then can claim its use.
    pub(crate) fn end(&self) -> u128 {
        self.curve.end()
    }

    /// Claims an exchange's use. The unattributed remainder is fractions that have become a
    /// whole unit, and what is left when no other exchange can claim.
    pub(crate) fn claim(&mut self, entered: u128, left: u128) -> Claim {
        let fine = self.curve.between(entered, left);
        let whole =
            |i: usize| entered >= self.first_load.share.min(left) && !self.curve.grew(entered, left, 2 + i);
        let mut claim = Claim { complete: [ENERGY, TIME].map(whole), ..Claim::default() };
        for i in [ENERGY, TIME] {
            claim.used[i] = (fine[i] >> FRACTION_BITS).min(self.held[i]);
            self.held[i] -= claim.used[i];
            self.fractions[i] += fine[i] & ((1 << FRACTION_BITS) - 1);
            if self.fractions[i] >> FRACTION_BITS > 0 && self.held[i] > 0 {
                self.fractions[i] -= 1 << FRACTION_BITS;
                self.held[i] -= 1;
                claim.remainder[i] += 1;
            }
        }
        let share = self.curve.within(left).saturating_sub(self.curve.within(entered));
        claim.remainder = added(claim.remainder, self.settle_share(share));
        let before = self.first_load.share.saturating_sub(entered);
        let lost = self.take_from_before(before);
        let (held, of) = (self.held, self.share);
        claim.remainder = added(claim.remainder, self.take_mean(lost, held, of));
        claim
    }

    /// Notes that exchanges have ended by this sample, which may never send a notice.
    pub(crate) fn note_exit(&mut self, at: Tick, load: &LoadReading) {
        self.exits.push_back(Exit { at, until: load.share, held: None });
        self.complete_exits();
    }

    /// Records the unclaimed use of exits that are covered by now. A counter that does not change, or a missing
    /// sample, leaves this behind the load cell.
    pub(crate) fn complete_exits(&mut self) {
        let (end, now) = (self.curve.end(), (self.held, self.share));
        let unknown = self.exits.iter_mut().rev().take_while(|exit| exit.held.is_none());
        unknown.filter(|exit| exit.until <= end).for_each(|exit| exit.held = Some(now));
    }

    /// Writes off the share of exchanges that had ended by the sample of `at` without a notice. Their
    /// use is estimated by the mean of what was held then. They may have had part of the share before the
    /// device was seen: as much as that can have been is not claim from others.
    pub(crate) fn write_off(&mut self, at: Tick, share: u128) -> Pair {
        let mut then = (self.held, self.share);
        while let Some(exit) = self.exits.front().copied()
            && exit.at <= at
        {
            if exit.at == at
                && let Some(held) = exit.held.filter(|(_, share)| *share > 0)
            {
                then = held;
            }
            self.exits.pop_front();
        }
        if at <= self.first_seen {
            return [0; 2];
        }
        let (held, of) = then;
        let share = self.take_from_before(share);
        self.take_mean(share, held, of)
    }

    /// Takes a share from that granted before the device was seen; returns the excess.
    fn take_from_before(&mut self, share: u128) -> u128 {
        let before = share.min(self.pending_before);
        self.pending_before -= before;
        share - before
    }

    /// Takes a share at the mean of `held` over the share `of`.
    fn take_mean(&mut self, share: u128, held: Pair, of: u128) -> Pair {
        if share == 0 || of == 0 {
            return [0; 2];
        }
        let lost = [ENERGY, TIME].map(|i| mul_div(held[i], share, of).min(self.held[i]));
        self.held = [self.held[ENERGY] - lost[ENERGY], self.held[TIME] - lost[TIME]];
        added(lost, self.settle_share(share))
    }

    /// Returns the unclaimed use.
    pub(crate) fn held(&self) -> Pair {
        self.held
    }

    /// Accounts for a share. Returns all that is left, if it was the last.
    fn settle_share(&mut self, share: u128) -> Pair {
        self.share = self.share.saturating_sub(share);
        match self.share {
            0 => {
                self.fractions = [0; 2];
                std::mem::take(&mut self.held)
            }
            _ => [0; 2],
        }
    }
}

/// The use that leaves an upstream's unclaimed use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    /// The use of the exchange.
    pub(crate) used: Pair,
    /// For energy and time: true if `used` is complete.
    pub(crate) complete: [bool; 2],
    /// The unattributed remainder.
    pub(crate) remainder: Pair,
}
