//! When the writer lets others have the core: between rows, unless it is late.
//!
//! Law: where there is no core to spare, traffic goes before the ledger, until rows have waited so long
//! that their acknowledgement is in danger; then the ledger takes the share that the scheduler gives it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// So many rows are entered in a row while nothing presses; they take about a tenth of a millisecond. While
/// something does, as many as are worth the turn that is given away.
const ROWS: (u32, u32) = (4, 32);

/// Rows that have waited so long press; those that have waited longer are late.
const WAITED: (Duration, Duration) = (Duration::from_millis(90), Duration::from_millis(150));

/// The yield policy of one commit.
#[derive(Debug)]
pub(crate) struct YieldPolicy {
    presses_at: Instant,
    late_at: Instant,
    rows: Cell<u32>,
}

impl YieldPolicy {
    /// Of rows of which the first has waited so long.
    pub(crate) fn new(waited: Duration) -> Self {
        let now = Instant::now();
        let at = |limit: Duration| now + limit.saturating_sub(waited);
        Self { presses_at: at(WAITED.0), late_at: at(WAITED.1), rows: Cell::new(0) }
    }

    /// Before a row: whether others were let go first.
    pub(crate) fn row(&self) -> bool {
        let rows = self.rows.get().wrapping_add(1);
        self.rows.set(rows);
        if !rows.is_multiple_of(ROWS.0) {
            return false;
        }
        let now = Instant::now();
        let gives_way = now < self.presses_at || (now < self.late_at && rows.is_multiple_of(ROWS.1));
        if gives_way {
            // Costs nothing where nobody waits for this core. A lower priority would not do: of threads
            // that differ in it, too, the scheduler lets the one that runs finish its slice of some
            // milliseconds; and once lowered, it cannot be raised without a privilege.
            std::thread::yield_now();
        }
        gives_way
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ROWS, WAITED, YieldPolicy};

    #[test]
    fn gives_way_between_rows_until_it_is_late() {
        let ways = |waited| {
            let yield_policy = YieldPolicy::new(waited);
            (0..4 * ROWS.1).filter(|_| yield_policy.row()).count()
        };
        // On a slow machine they may be late before the first turn is given away, but not each time.
        assert!((0..100).any(|_| ways(Duration::ZERO) > 0), "in time");
        assert!(ways(WAITED.0) <= 4, "they press");
        assert_eq!(ways(WAITED.1), 0, "late");
        assert_eq!(ways(WAITED.1 * 2), 0, "later");
    }
}
