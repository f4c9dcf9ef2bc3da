//! The policy by which the writer yields the core between rows, unless it is late.
//!
//! Law: on a busy machine traffic goes before the ledger, until rows have waited so long that they would be
//! acknowledged too late. Then the writer uses the share of a core that the scheduler gives it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The number of rows between two yields while no row is urgent (about a tenth of a millisecond), and while one is.
const ROWS: (u32, u32) = (4, 32);

/// The wait from which rows are urgent, and from which they are late.
const WAITED: (Duration, Duration) = (Duration::from_millis(90), Duration::from_millis(150));

/// The yield policy of one commit.
#[derive(Debug)]
pub(crate) struct YieldPolicy {
    urgent_at: Instant,
    late_at: Instant,
    rows: Cell<u32>,
}

impl YieldPolicy {
    /// Creates the policy of a commit whose first row has waited for a time.
    pub(crate) fn new(waited: Duration) -> Self {
        let now = Instant::now();
        let at = |limit: Duration| now + limit.saturating_sub(waited);
        Self { urgent_at: at(WAITED.0), late_at: at(WAITED.1), rows: Cell::new(0) }
    }

    /// Counts a row that is about to be entered. Returns true if the thread yielded.
    pub(crate) fn row(&self) -> bool {
        let rows = self.rows.get().wrapping_add(1);
        self.rows.set(rows);
        if !rows.is_multiple_of(ROWS.0) {
            return false;
        }
        let now = Instant::now();
        let yields = now < self.urgent_at || (now < self.late_at && rows.is_multiple_of(ROWS.1));
        if yields {
            // A yield costs nothing if no thread waits for this core. A lower priority would not help: the scheduler
            // lets the running thread finish its slice of some milliseconds, whatever the priority of the others; and
            // a lowered priority cannot be raised again without a privilege.
            std::thread::yield_now();
        }
        yields
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ROWS, WAITED, YieldPolicy};

    #[test]
    fn yields_between_rows_until_late() {
        let yields = |waited| {
            let yield_policy = YieldPolicy::new(waited);
            (0..4 * ROWS.1).filter(|_| yield_policy.row()).count()
        };
        // On a slow machine rows may be late before the first yield, but not in each attempt.
        assert!((0..100).any(|_| yields(Duration::ZERO) > 0), "in time");
        assert!(yields(WAITED.0) <= 4, "urgent");
        assert_eq!(yields(WAITED.1), 0, "late");
        assert_eq!(yields(WAITED.1 * 2), 0, "later");
    }
}
