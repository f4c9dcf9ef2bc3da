//! The samples of tenants: what the workers counted of each.

use std::fmt::Result;

use meter::{Ending, TokenType};
use relay::Refusal;

use crate::family::Family;
use crate::totals::Totals;

pub(super) fn tokens(totals: &Totals, family: &mut Family) -> Result {
    for (name, tenant) in &totals.tenants {
        for (kind, n) in TokenType::ALL.iter().zip(&tenant.tokens) {
            if n.get() > 0 {
                family.count(&[name, kind.name()], n.get())?;
            }
        }
    }
    Ok(())
}

/// Every ending once there was one, so that the first error is a step up from zero.
pub(super) fn exchanges(totals: &Totals, family: &mut Family) -> Result {
    for (name, tenant) in &totals.tenants {
        if tenant.exchanges.iter().any(|n| n.get() > 0) {
            for (ending, n) in Ending::ALL.iter().zip(&tenant.exchanges) {
                family.count(&[name, ending.name()], n.get())?;
            }
        }
    }
    Ok(())
}

/// Zero, too, of each that had an exchange: so the first is a step up.
pub(super) fn uncounted(totals: &Totals, family: &mut Family) -> Result {
    for (name, tenant) in &totals.tenants {
        if tenant.exchanges.iter().any(|n| n.get() > 0) {
            family.count(&[name], tenant.uncounted.get())?;
        }
    }
    Ok(())
}

/// What there was; and, of every tenant, those for its budget, so that the first is a step up from zero.
pub(super) fn refused(totals: &Totals, family: &mut Family) -> Result {
    for (name, tenant) in &totals.tenants {
        for (reason, n) in Refusal::ALL.iter().zip(&tenant.refused) {
            if n.get() > 0 || *reason == Refusal::Budget {
                family.count(&[name, reason.name()], n.get())?;
            }
        }
    }
    Ok(())
}
