//! The state of a budget, for the metrics, and the rejection of a tenant, for the gate.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::period::Period;

/// The state of one budget for one tenant, or for all who share its limit. Money is in pico-units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetState {
    /// The budget's name.
    pub budget: Arc<str>,
    /// The tenant; for a shared limit `_shared:` and the budget's name.
    pub tenant: Arc<str>,
    /// Its period.
    pub period: Period,
    /// Its soft limit.
    pub soft: Option<i128>,
    /// Its hard limit.
    pub hard: Option<i128>,
    /// The spend in the current period.
    pub used: i128,
    /// The forecast of the period's spend.
    pub forecast: Option<i128>,
    /// True if requests are rejected now.
    pub refused: bool,
}

/// The rejection of a tenant's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Seconds until the period ends, at least 1.
    pub retry_after_s: u64,
    /// The message to the client: budget, limit, end. It names the budget and no tenant.
    pub message: Box<str>,
}

/// Returns, of several budgets with the same tenant and period, the one with the least left: gauges have no label
/// for the budget.
pub fn tightest(states: Vec<BudgetState>) -> Vec<BudgetState> {
    let mut kept: BTreeMap<(Arc<str>, Period), BudgetState> = BTreeMap::new();
    for state in states {
        let key = (Arc::clone(&state.tenant), state.period);
        match kept.get(&key) {
            Some(other) if left(other) <= left(&state) => {}
            _ => {
                kept.insert(key, state);
            }
        }
    }
    kept.into_values().collect()
}

fn left(state: &BudgetState) -> i128 {
    let limit = state.hard.or(state.soft).unwrap_or(i128::MAX);
    limit.saturating_sub(state.used)
}
