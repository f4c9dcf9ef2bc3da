//! An upstream's load cell: how many exchanges are in flight, and the integrals that say what one
//! of them shared the server with. Touched at an exchange's start and end, never per frame.
//!
//! The law: every share that was granted belongs to somebody. Over all exchanges that have left,
//! Σ (left.share − entered.share), and over all in flight, Σ (share now − entered.share), are
//! together `granted`: exactly, always. What energy is attributed by rests on it.

use crate::Tick;

/// Units of share in a nanosecond.
pub const SHARES_PER_NS: u128 = 1 << 32;

/// In flight n with ∫n dt, ∫[n>0] dt and ∫dt/n, as of the last change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    in_flight: u64,
    changed: Tick,
    exchange_ns: u128,
    busy_ns: u64,
    share: u128,
    granted: u128,
    /// Σ of the share at which those in flight entered.
    entered: u128,
}

/// The integrals of a load cell at one tick; differences of two are what lies between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadReading {
    /// Exchanges in flight.
    pub in_flight: u64,
    /// ∫n dt in exchange-nanoseconds.
    pub exchange_ns: u128,
    /// ∫[n>0] dt in nanoseconds.
    pub busy_ns: u64,
    /// ∫dt/n over busy time, in 2⁻³² ns, each step of it rounded down: what one exchange was granted
    /// that was there from the beginning.
    pub share: u128,
    /// What all exchanges together were granted, in 2⁻³² ns: n times each step of `share`. Less than
    /// ∫[n>0] dt by the rounding, which is under n units at each change of n.
    pub granted: u128,
    /// What those in flight were granted until now, in 2⁻³² ns.
    pub pending: u128,
    /// When it was read.
    pub at: Tick,
}

impl Load {
    /// An exchange begins.
    pub fn enter(&mut self, at: Tick) -> LoadReading {
        self.advance(at);
        self.in_flight += 1;
        self.entered += self.share;
        self.reading()
    }

    /// The exchange ends that was told `entered` when it began.
    pub fn leave(&mut self, at: Tick, entered: &LoadReading) -> LoadReading {
        self.advance(at);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.entered = self.entered.saturating_sub(entered.share);
        self.reading()
    }

    /// The integrals up to `at`.
    pub fn read(&mut self, at: Tick) -> LoadReading {
        self.advance(at);
        self.reading()
    }

    fn advance(&mut self, at: Tick) {
        let ns = at.since(self.changed);
        self.changed = self.changed.max(at);
        if self.in_flight > 0 {
            let n = u128::from(self.in_flight);
            self.exchange_ns += n * u128::from(ns);
            self.busy_ns += ns;
            // The remainder is not carried: it would go to others, and to a time that may be
            // shorter than itself.
            let step = u128::from(ns) * SHARES_PER_NS / n;
            self.share += step;
            self.granted += n * step;
        }
    }

    fn reading(&self) -> LoadReading {
        LoadReading {
            in_flight: self.in_flight,
            exchange_ns: self.exchange_ns,
            busy_ns: self.busy_ns,
            share: self.share,
            granted: self.granted,
            pending: (u128::from(self.in_flight) * self.share).saturating_sub(self.entered),
            at: self.changed,
        }
    }
}

/// What lies between the beginning and the end of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadSpan {
    /// As it entered, itself counted in.
    pub entered: LoadReading,
    /// As it left, itself counted out.
    pub left: LoadReading,
}

impl LoadSpan {
    /// The exchange's part of the upstream's time, nanoseconds: its own time divided, at each moment,
    /// by how many were in flight.
    pub fn share_ns(&self) -> u64 {
        let share = self.left.share.saturating_sub(self.entered.share) / SHARES_PER_NS;
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Nobody else was there: for those who keep no load cell.
    pub fn alone() -> Self {
        let reading = LoadReading { in_flight: 1, ..LoadReading::default() };
        Self { entered: reading, left: reading }
    }

    /// Mean number of exchanges in flight at the upstream, this one among them.
    pub fn concurrency(&self) -> f64 {
        self.left.mean_since(&self.entered)
    }
}

impl LoadReading {
    /// Mean number of exchanges in flight between two readings; the count itself if they coincide.
    pub fn mean_since(&self, earlier: &Self) -> f64 {
        match self.at.since(earlier.at) {
            0 => earlier.in_flight as f64,
            ns => (self.exchange_ns - earlier.exchange_ns) as f64 / ns as f64,
        }
    }

    /// What was granted to all that have left, in 2⁻³² ns. It only grows, by each who leaves, so it
    /// also says who left before a reading was taken and who after, where their ticks are equal.
    pub fn gone(&self) -> u128 {
        self.granted.saturating_sub(self.pending)
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
