//! Time as the data plane knows it: a number the caller hands in. Durations are differences of
//! ticks; wall time is stamped by the caller and never computed with.

/// Nanoseconds on the caller's monotonic clock, from an origin of its choosing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

impl Tick {
    /// Nanoseconds since `earlier`; zero if the clock was handed in out of order.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
