//! Daily totals, of which most reports are made, from ledger files as from a central store.

use crate::Row;
use crate::sums::{Sums, Used};
use crate::total_key::{Class, TotalKey};

/// The sums of a day's exchanges with equal keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyTotal {
    /// The keys.
    pub key: TotalKey,
    /// The sums.
    pub sums: Sums,
}

impl DailyTotal {
    /// Returns the total of a single row.
    pub fn of_row(row: &Row, used: Option<&Used>) -> Self {
        let mut sums = Sums::default();
        sums.add_row(row);
        if let Some(used) = used {
            sums.add_used(used, row.role);
        }
        Self { key: TotalKey::of_row(row, Class::Usage), sums }
    }
}
