//! Samples of the ledger, of its shipping to the central store, and of reloaded files.

use std::fmt::Result;

use crate::family::Family;
use crate::ledger::{
    LEDGER_ENERGY, LEDGER_FAULTS, LEDGER_FILES, LEDGER_ROW, LedgerReading, SHIP_FAILURES, ShipReading,
};
use crate::reload::{RELOAD_OUTCOMES, ReloadedFile};
use crate::totals::Totals;

/// Writes one whole number, if the process has a ledger.
pub(super) fn count(totals: &Totals, family: &mut Family, pick: impl Fn(&LedgerReading) -> u64) -> Result {
    totals.ledger.as_ref().map_or(Ok(()), |ledger| family.count(&[], pick(ledger)))
}

pub(super) fn lag(totals: &Totals, family: &mut Family) -> Result {
    totals.ledger.as_ref().map_or(Ok(()), |ledger| family.number(&[], ledger.commit_lag.as_secs_f64()))
}

pub(super) fn bytes(totals: &Totals, family: &mut Family) -> Result {
    let bytes = totals.ledger.iter().flat_map(|ledger| LEDGER_FILES.iter().zip(ledger.bytes));
    for (file, n) in bytes {
        if let Some(n) = n {
            family.count(&[file], n)?;
        }
    }
    Ok(())
}

pub(super) fn faults(totals: &Totals, family: &mut Family) -> Result {
    let mut faults = totals.ledger.iter().flat_map(|ledger| LEDGER_FAULTS.iter().zip(ledger.faults));
    faults.try_for_each(|(fault, n)| family.count(&[fault], n))
}

/// Writes the losses of the ledger, if the process has one.
pub(super) fn dropped(totals: &Totals, family: &mut Family) -> Result {
    totals.ledger.as_ref().map_or(Ok(()), |ledger| {
        family.count(&[LEDGER_ROW], ledger.shed_rows.saturating_add(ledger.lost_rows))?;
        family.count(&[LEDGER_ENERGY], ledger.lost_energies)
    })
}

/// Writes one whole number, if rows are shipped.
pub(super) fn shipped(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&ShipReading) -> Option<u64>,
) -> Result {
    match totals.ship.as_ref().and_then(pick) {
        Some(n) => family.count(&[], n),
        None => Ok(()),
    }
}

pub(super) fn ship_lag(totals: &Totals, family: &mut Family) -> Result {
    totals.ship.as_ref().map_or(Ok(()), |ship| family.number(&[], ship.lag.as_secs_f64()))
}

pub(super) fn ship_failures(totals: &Totals, family: &mut Family) -> Result {
    let mut failures = totals.ship.iter().flat_map(|ship| SHIP_FAILURES.iter().zip(ship.failures));
    failures.try_for_each(|(reason, n)| family.count(&[reason], n))
}

/// Writes the last result of each file that was ever read.
pub(super) fn reload_success(totals: &Totals, family: &mut Family) -> Result {
    for (file, reload) in ReloadedFile::ALL.iter().zip(&totals.reloads.0) {
        if let Some(accepted) = reload.last {
            family.count(&[file.name()], u64::from(accepted))?;
        }
    }
    Ok(())
}

/// Writes the outcomes of each file that was ever read.
pub(super) fn reloads(totals: &Totals, family: &mut Family) -> Result {
    for (file, reload) in ReloadedFile::ALL.iter().zip(&totals.reloads.0) {
        if reload.last.is_some() {
            for (outcome, n) in RELOAD_OUTCOMES.iter().zip(reload.outcomes) {
                family.count(&[file.name(), outcome], n)?;
            }
        }
    }
    Ok(())
}
