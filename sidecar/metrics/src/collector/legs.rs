//! Samples of legs.

use std::fmt::Result;

use meter::{Ending, Role};

use super::models;
use crate::family::Family;
use crate::leg::{LEGS, LegCells};
use crate::totals::Totals;

/// Writes every ending of a role once one occurred, so that the series of errors begin at zero.
pub(super) fn exchanges(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |name, role, cells| {
        Ending::ALL
            .iter()
            .zip(&cells.endings)
            .try_for_each(|(ending, n)| family.count(&[name, role.name(), ending.name()], n.get()))
    })
}

pub(super) fn duration(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |name, role, cells| family.histogram(&[name, role.name()], &cells.duration.read()))
}

pub(super) fn prompt_tokens(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |name, role, cells| match role {
        Role::Prefill => family.count(&[name], cells.prompt_tokens.get()),
        _ => Ok(()),
    })
}

fn each(totals: &Totals, mut write: impl FnMut(&str, Role, &LegCells) -> Result) -> Result {
    models(totals, |name, model| {
        LEGS.into_iter()
            .zip(&model.legs)
            .try_for_each(|(role, cells)| cells.get().map_or(Ok(()), |cells| write(name, role, cells)))
    })
}
