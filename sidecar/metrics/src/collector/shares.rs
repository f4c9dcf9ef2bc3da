//! Samples of the attribution of energy, device time and money.

use std::fmt::Result;

use crate::attribution::{COST_PARTS, Share};
use crate::family::Family;
use crate::totals::Totals;

/// Writes one number for each tenant.
pub(super) fn tenants(totals: &Totals, family: &mut Family, pick: impl Fn(&Share) -> f64) -> Result {
    totals.tenant_shares.iter().try_for_each(|(tenant, share)| family.number(&[tenant], pick(share)))
}

pub(super) fn models(totals: &Totals, family: &mut Family) -> Result {
    totals.model_shares.iter().try_for_each(|(model, share)| family.number(&[model], share.energy_joules))
}

pub(super) fn per_token(totals: &Totals, family: &mut Family) -> Result {
    totals.energy_per_token.iter().try_for_each(|(model, of)| family.histogram(&[model], of))
}

pub(super) fn tenant_costs(totals: &Totals, family: &mut Family) -> Result {
    for (tenant, share) in &totals.tenant_shares {
        for (part, usd) in COST_PARTS.iter().zip(share.cost_usd) {
            if let Some(usd) = usd {
                family.number(&[tenant, part], usd)?;
            }
        }
    }
    Ok(())
}
