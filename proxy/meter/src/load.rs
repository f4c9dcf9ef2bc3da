//! The load cell of an upstream: its exchanges in flight, and the integrals from which each one's share of
//! the server follows. It changes at the start and end of an exchange, never per frame.
//!
//! Invariant: every granted share belongs to one exchange. Σ (left.share − entered.share) over all exchanges
//! that have left, plus Σ (share now − entered.share) over all in flight, is exactly `granted` at any time.
//! Energy attribution rests on it.

use crate::Tick;

/// Units of share per nanosecond.
pub const SHARES_PER_NS: u128 = 1 << 32;

/// The exchanges in flight n, with ∫n dt, `∫[n>0] dt` and ∫dt/n, as of the last change.
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

/// The integrals of a load cell at one tick. The difference of two readings covers the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadReading {
    /// Exchanges in flight.
    pub in_flight: u64,
    /// ∫n dt in exchange-nanoseconds.
    pub exchange_ns: u128,
    /// `∫[n>0] dt` in nanoseconds.
    pub busy_ns: u64,
    /// ∫dt/n over busy time, in 2⁻³² ns, each step rounded down: the grant of one exchange that is in flight
    /// throughout.
    pub share: u128,
    /// The grants of all exchanges, in 2⁻³² ns: n times each step of `share`. It falls short of `∫[n>0] dt` by
    /// the rounding, less than n units at each change of n.
    pub granted: u128,
    /// The grants so far of those in flight, in 2⁻³² ns.
    pub pending: u128,
    /// The tick of the reading.
    pub at: Tick,
}

impl Load {
    /// Starts an exchange.
    pub fn enter(&mut self, at: Tick) -> LoadReading {
        self.advance(at);
        self.in_flight += 1;
        self.entered += self.share;
        self.reading()
    }

    /// Ends the exchange that got `entered` from [`Load::enter`].
    pub fn leave(&mut self, at: Tick, entered: &LoadReading) -> LoadReading {
        self.advance(at);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.entered = self.entered.saturating_sub(entered.share);
        self.reading()
    }

    /// Returns the integrals up to `at`.
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
            // The remainder is not carried over: it would go to other exchanges, and to a time that may be
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

/// The load between the start and the end of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadSpan {
    /// The reading at its start, itself included.
    pub entered: LoadReading,
    /// The reading at its end, itself excluded.
    pub left: LoadReading,
}

impl LoadSpan {
    /// The exchange's share of the upstream's time, nanoseconds: its own time divided, at each moment, by
    /// the number in flight.
    pub fn share_ns(&self) -> u64 {
        let share = self.left.share.saturating_sub(self.entered.share) / SHARES_PER_NS;
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// The only exchange in flight, for callers without a load cell.
    pub fn single() -> Self {
        let reading = LoadReading { in_flight: 1, ..LoadReading::default() };
        Self { entered: reading, left: reading }
    }

    /// The mean number of exchanges in flight at the upstream, this one included.
    pub fn concurrency(&self) -> f64 {
        self.left.mean_since(&self.entered)
    }
}

impl LoadReading {
    /// The mean number of exchanges in flight between two readings; the current number if they coincide.
    pub fn mean_since(&self, earlier: &Self) -> f64 {
        match self.at.since(earlier.at) {
            0 => earlier.in_flight as f64,
            ns => (self.exchange_ns - earlier.exchange_ns) as f64 / ns as f64,
        }
    }

    /// The grants of all exchanges that have left, in 2⁻³² ns. It grows with each of them, so it also orders
    /// leaves and readings that have equal ticks.
    pub fn released(&self) -> u128 {
        self.granted.saturating_sub(self.pending)
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
