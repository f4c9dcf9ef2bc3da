//! How a budget stands, for the metrics, and who is refused, for the gate.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::period::Period;

/// How one purse stands under one budget. Money is in pico-units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The budget's name.
    pub budget: Arc<str>,
    /// The tenant; of a shared purse `_shared:` and the budget's name.
    pub tenant: Arc<str>,
    /// Its period.
    pub period: Period,
    /// Its soft limit.
    pub soft: Option<i128>,
    /// Its hard limit.
    pub hard: Option<i128>,
    /// What was spent in the period that is on.
    pub used: i128,
    /// What will have been spent by its end.
    pub forecast: Option<i128>,
    /// Whether requests are refused for it now.
    pub refused: bool,
}

/// Why a tenant's requests are refused, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Seconds until the period is over, at least 1.
    pub retry_after_s: u64,
    /// What the client is told: which budget, how much, until when. Of names it has the budget's alone.
    pub message: Box<str>,
}

/// Of several budgets over one period, the one that leaves a tenant the least: gauges have no label
/// for the budget.
pub fn tightest(readings: Vec<Reading>) -> Vec<Reading> {
    let mut kept: BTreeMap<(Arc<str>, Period), Reading> = BTreeMap::new();
    for reading in readings {
        let key = (Arc::clone(&reading.tenant), reading.period);
        match kept.get(&key) {
            Some(other) if left(other) <= left(&reading) => {}
            _ => {
                kept.insert(key, reading);
            }
        }
    }
    kept.into_values().collect()
}

fn left(reading: &Reading) -> i128 {
    let limit = reading.hard.or(reading.soft).unwrap_or(i128::MAX);
    limit.saturating_sub(reading.used)
}
