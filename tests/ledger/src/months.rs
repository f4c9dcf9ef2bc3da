//! A ledger of three months, of which one can be closed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ledger::source::Month;
use ledger::{Ledger, Plan};

use crate::rows::Place;

/// January 2026.
pub const CLOSED: Month = (2026 - 1970) * 12;

/// The 5th of March 2026, noon, microseconds since 1970.
pub const NOW_US: i64 = 1_772_712_000_000_000;

const DAY_US: i64 = 86_400_000_000;

/// Writes the ledger: this number of rows in each of January, February and March, and ends.
///
/// # Panics
/// If they are not on the disk within a minute.
pub fn write(path: &Path, rows: u32) {
    let ledger: Ledger = ledger::start(Plan { clock: Arc::new(|| NOW_US), ..Plan::new(path) });
    for (life, days_ago) in [(0, 45), (1, 20), (2, 1)] {
        for index in 0..rows {
            ledger.enter(Place { life, index }.row(NOW_US - days_ago * DAY_US));
        }
    }
    assert!(ledger.shutdown(Duration::from_secs(60)), "{:?}", ledger.status());
}
