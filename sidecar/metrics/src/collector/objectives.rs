//! Samples of the objectives: their configuration and their verdicts.

use std::fmt::Result;

use meter::Provenance;

use super::models;
use crate::cell::Count;
use crate::family::Family;
use crate::objective::{Objective, ObjectiveCells, Verdict};
use crate::totals::Totals;

pub(super) fn bound(totals: &Totals, family: &mut Family, pick: impl Fn(&Objective) -> f64) -> Result {
    totals.objectives.iter().try_for_each(|one| family.number(&[&one.name], pick(one)))
}

pub(super) fn exchanges(totals: &Totals, family: &mut Family) -> Result {
    judged(totals, |model, objective, cells| verdicts(family, model, objective, &cells.verdicts))
}

pub(super) fn goodput(totals: &Totals, family: &mut Family) -> Result {
    judged(totals, |model, objective, cells| {
        family.count(&[model, &objective.name], cells.verdicts[Verdict::Met as usize].get())
    })
}

/// Writes tokens by provenance; goodput begins at zero with the first exchange, so that its share is defined.
pub(super) fn tokens(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&ObjectiveCells) -> &[Count],
) -> Result {
    judged(totals, |model, objective, cells| {
        for ((provenance, n), all) in Provenance::ALL.iter().zip(pick(cells)).zip(&cells.tokens) {
            if all.get() > 0 {
                family.count(&[model, &objective.name, provenance.name()], n.get())?;
            }
        }
        Ok(())
    })
}

pub(super) fn tenants(totals: &Totals, family: &mut Family) -> Result {
    for (name, tenant) in &totals.tenants {
        for (at, objective) in totals.objectives.iter().enumerate() {
            if let Some(counts) = tenant.verdicts.get(&at) {
                verdicts(family, name, objective, counts)?;
            }
        }
    }
    Ok(())
}

/// Writes each model's cells of each objective that applied to it, in the order of the list.
fn judged(totals: &Totals, mut write: impl FnMut(&str, &Objective, &ObjectiveCells) -> Result) -> Result {
    models(totals, |name, model| {
        for (at, objective) in totals.objectives.iter().enumerate() {
            if let Some(cells) = model.objectives.get(&at) {
                write(name, objective, cells)?;
            }
        }
        Ok(())
    })
}

/// Writes every verdict once one occurred, so that the series of failures begin at zero.
fn verdicts(family: &mut Family, name: &str, objective: &Objective, counts: &[Count]) -> Result {
    Verdict::ALL
        .iter()
        .zip(counts)
        .try_for_each(|(verdict, n)| family.count(&[name, &objective.name, verdict.name()], n.get()))
}
