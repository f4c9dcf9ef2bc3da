//! Samples of tenants, from the workers' cells.

use std::fmt::Result;

use meter::Refusal;
use meter::{Ending, TokenType};

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

/// Writes every ending once one occurred, so that the series of errors begin at zero.
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

/// Writes each tenant that had an exchange, zeros included, so that the series begins at zero.
pub(super) fn uncounted(totals: &Totals, family: &mut Family) -> Result {
    for (name, tenant) in &totals.tenants {
        if tenant.exchanges.iter().any(|n| n.get() > 0) {
            family.count(&[name], tenant.uncounted.get())?;
        }
    }
    Ok(())
}

/// Writes the reasons that occurred. Each tenant has the reason `budget`, so that this series begins at zero.
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
