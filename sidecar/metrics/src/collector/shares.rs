//! Samples of the attribution of energy, device time and money.

use std::fmt::Result;

use crate::attribution::{COST_PARTS, DeviceShare, Share};
use crate::family::Family;
use crate::totals::Totals;

/// Writes one number for each tenant.
pub(super) fn tenants(totals: &Totals, family: &mut Family, pick: impl Fn(&Share) -> f64) -> Result {
    totals.shares.tenants.iter().try_for_each(|tenant| family.number(&[&tenant.tenant], pick(&tenant.share)))
}

/// Writes one number for each device.
pub(super) fn devices(totals: &Totals, family: &mut Family, pick: impl Fn(&DeviceShare) -> f64) -> Result {
    totals.shares.devices.iter().try_for_each(|device| family.number(&[&device.id], pick(device)))
}

pub(super) fn models(totals: &Totals, family: &mut Family) -> Result {
    totals.shares.models.iter().try_for_each(|model| family.number(&[&model.model], model.energy_joules))
}

pub(super) fn per_token(totals: &Totals, family: &mut Family) -> Result {
    totals.energy_per_token.iter().try_for_each(|(model, of)| family.histogram(&[model], of))
}

pub(super) fn tenant_costs(totals: &Totals, family: &mut Family) -> Result {
    totals.shares.tenants.iter().try_for_each(|tenant| costs(family, &tenant.tenant, &tenant.share))
}

pub(super) fn device_costs(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&DeviceShare) -> &Share,
) -> Result {
    totals.shares.devices.iter().try_for_each(|device| costs(family, &device.id, pick(device)))
}

fn costs(family: &mut Family, of: &str, share: &Share) -> Result {
    for (part, usd) in COST_PARTS.iter().zip(share.cost_usd) {
        if let Some(usd) = usd {
            family.number(&[of, part], usd)?;
        }
    }
    Ok(())
}
