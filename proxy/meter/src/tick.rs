//! Time in the data plane: a number supplied by the caller. Durations are differences of ticks; wall times
//! are stamped by the caller and never used in arithmetic.

/// Nanoseconds on the caller's monotonic clock, from an origin of its choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

impl Tick {
    /// Nanoseconds since `earlier`; zero if the ticks are out of order.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
