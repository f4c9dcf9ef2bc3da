//! The budgets, as the control plane reports them. Invariant: a tenant beyond the cap is counted under `_other`,
//! and its money is added there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::names::OTHER;

/// The current state of one tenant's budget for one kind of period. Sums are pico-units of the price book's
/// currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetReading {
    /// The tenant.
    pub tenant: Arc<str>,
    /// The period, as its label value.
    pub period: Arc<str>,
    /// The soft limit, which only alerts.
    pub soft_pico: Option<i128>,
    /// The hard limit.
    pub hard_pico: Option<i128>,
    /// The spend since the start of the period.
    pub used_pico: i128,
    /// The forecast spend at the end of the period; `None` until there is enough data.
    pub forecast_pico: Option<i128>,
}

impl BudgetReading {
    fn add(&mut self, other: &Self) {
        let add = |mine: &mut Option<i128>, theirs: Option<i128>| {
            if let Some(pico) = theirs {
                *mine = Some(mine.unwrap_or_default().saturating_add(pico));
            }
        };
        add(&mut self.soft_pico, other.soft_pico);
        add(&mut self.hard_pico, other.hard_pico);
        add(&mut self.forecast_pico, other.forecast_pico);
        self.used_pico = self.used_pico.saturating_add(other.used_pico);
    }
}

/// Label values of `limit`.
pub const BUDGET_LIMITS: [&str; 2] = ["soft", "hard"];

/// Label values of `threshold`.
pub const BUDGET_THRESHOLDS: [&str; 5] = ["50", "80", "100", "soft", "forecast"];

/// Label values of `period`.
pub const BUDGET_PERIODS: [&str; 4] = ["day", "week", "month", "30d"];

/// Label values of `outcome` of `tokenmeter_budget_webhooks_total`.
pub const WEBHOOK_OUTCOMES: [&str; 3] = ["sent", "failed", "dropped"];

/// All budgets, under labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budgets {
    /// By tenant and period, sorted.
    pub(crate) readings: Vec<BudgetReading>,
    /// By tenant and period, each in the order of [`BUDGET_THRESHOLDS`].
    pub(crate) alerts: BTreeMap<(Arc<str>, Arc<str>), [u64; BUDGET_THRESHOLDS.len()]>,
    /// In the order of [`WEBHOOK_OUTCOMES`]; `None` without a webhook.
    pub(crate) webhooks: Option<[u64; WEBHOOK_OUTCOMES.len()]>,
}

impl Budgets {
    /// Replaces the readings. Tenants are labels.
    pub(crate) fn set(&mut self, readings: Vec<BudgetReading>) {
        let mut by_label: BTreeMap<(Arc<str>, Arc<str>), BudgetReading> = BTreeMap::new();
        for reading in readings {
            let key = (Arc::clone(&reading.tenant), Arc::clone(&reading.period));
            // The series begins at zero, so that `increase` sees the first alert.
            self.alerts.entry(key.clone()).or_default();
            let new = || BudgetReading {
                tenant: Arc::clone(&key.0),
                period: Arc::clone(&key.1),
                ..BudgetReading::default()
            };
            by_label.entry(key.clone()).or_insert_with(new).add(&reading);
        }
        self.readings = by_label.into_values().collect();
    }

    /// Moves the alerts of an evicted label to `_other`.
    pub(crate) fn evict(&mut self, label: &Arc<str>) {
        let moved: Vec<_> = self.alerts.extract_if(.., |(tenant, _), _| tenant == label).collect();
        for ((_, period), alerts) in moved {
            let others = self.alerts.entry((OTHER.into(), period)).or_default();
            others.iter_mut().zip(alerts).for_each(|(sum, n)| *sum += n);
        }
    }

    /// Counts a threshold that was reached; a threshold outside the list is ignored.
    pub(crate) fn alert(&mut self, tenant: Arc<str>, period: &str, threshold: &str) {
        let at = BUDGET_THRESHOLDS.iter().position(|known| *known == threshold);
        debug_assert!(at.is_some(), "{threshold} is not a threshold");
        if let Some(at) = at {
            self.alerts.entry((tenant, period.into())).or_default()[at] += 1;
        }
    }
}
