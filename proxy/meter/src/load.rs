//! An upstream's load cell: how many exchanges are in flight, and the integrals that say what one
//! of them shared the server with. Touched at an exchange's start and end, never per frame.

use crate::Tick;

/// In flight n with ∫n dt, ∫[n>0] dt and ∫dt/n, as of the last change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    in_flight: u64,
    changed: Tick,
    exchange_ns: u128,
    busy_ns: u64,
    share_ns: f64,
}

/// The integrals of a load cell at one tick; differences of two are what lies between.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadReading {
    /// Exchanges in flight.
    pub in_flight: u64,
    /// ∫n dt in exchange-nanoseconds.
    pub exchange_ns: u128,
    /// ∫[n>0] dt in nanoseconds.
    pub busy_ns: u64,
    /// ∫dt/n over busy time, in nanoseconds.
    pub share_ns: f64,
    /// When it was read.
    pub at: Tick,
}

impl Load {
    /// An exchange begins.
    pub fn enter(&mut self, at: Tick) -> LoadReading {
        self.advance(at);
        self.in_flight += 1;
        self.reading()
    }

    /// An exchange ends.
    pub fn leave(&mut self, at: Tick) -> LoadReading {
        self.advance(at);
        self.in_flight = self.in_flight.saturating_sub(1);
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
            self.exchange_ns += u128::from(self.in_flight) * u128::from(ns);
            self.busy_ns += ns;
            self.share_ns += ns as f64 / self.in_flight as f64;
        }
    }

    fn reading(&self) -> LoadReading {
        LoadReading {
            in_flight: self.in_flight,
            exchange_ns: self.exchange_ns,
            busy_ns: self.busy_ns,
            share_ns: self.share_ns,
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
}
