//! Samples of spend and budgets.

use std::fmt::Result;

use crate::budget::{BUDGET_LIMITS, BUDGET_THRESHOLDS, BudgetReading, WEBHOOK_OUTCOMES};
use crate::family::Family;
use crate::spend::{Basis, Sums, units};
use crate::totals::Totals;

/// Writes the sums on these bases.
pub(super) fn sums(sums: &Sums, bases: &[Basis], family: &mut Family) -> Result {
    for (name, sums) in sums {
        for basis in bases {
            if let Some(pico) = sums[*basis as usize] {
                family.number(&[name, basis.name()], units(pico))?;
            }
        }
    }
    Ok(())
}

pub(super) fn unpriced(totals: &Totals, family: &mut Family) -> Result {
    totals.spend.unpriced.iter().try_for_each(|((model, reason), n)| family.count(&[model, reason], *n))
}

pub(super) fn unpriced_tiers(totals: &Totals, family: &mut Family) -> Result {
    totals.spend.unpriced_tiers.iter().try_for_each(|(model, n)| family.count(&[model], *n))
}

pub(super) fn limits(totals: &Totals, family: &mut Family) -> Result {
    for budget in &totals.budgets.readings {
        for (limit, pico) in BUDGET_LIMITS.iter().zip([budget.soft_pico, budget.hard_pico]) {
            if let Some(pico) = pico {
                family.number(&[&budget.tenant, &budget.period, limit], units(pico))?;
            }
        }
    }
    Ok(())
}

/// Writes one sum of each budget that has it.
pub(super) fn budgets(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&BudgetReading) -> Option<i128>,
) -> Result {
    for budget in &totals.budgets.readings {
        if let Some(pico) = pick(budget) {
            family.number(&[&budget.tenant, &budget.period], units(pico))?;
        }
    }
    Ok(())
}

pub(super) fn alerts(totals: &Totals, family: &mut Family) -> Result {
    for ((tenant, period), alerts) in &totals.budgets.alerts {
        for (threshold, n) in BUDGET_THRESHOLDS.iter().zip(alerts) {
            family.count(&[tenant, period, threshold], *n)?;
        }
    }
    Ok(())
}

pub(super) fn webhooks(totals: &Totals, family: &mut Family) -> Result {
    let webhooks = WEBHOOK_OUTCOMES.iter().zip(totals.budgets.webhooks.iter().flatten());
    webhooks.into_iter().try_for_each(|(outcome, n)| family.count(&[outcome], *n))
}
