//! Samples of reloaded files.

use std::fmt::Result;

use crate::family::Family;
use crate::reload::{RELOAD_OUTCOMES, ReloadedFile};
use crate::totals::Totals;

/// Writes the last result of each file that was ever read.
pub(super) fn success(totals: &Totals, family: &mut Family) -> Result {
    for (file, reload) in ReloadedFile::ALL.iter().zip(&totals.reloads.0) {
        if let Some(accepted) = reload.last {
            family.count(&[file.name()], u64::from(accepted))?;
        }
    }
    Ok(())
}

/// Writes the outcomes of each file that was ever read.
pub(super) fn outcomes(totals: &Totals, family: &mut Family) -> Result {
    for (file, reload) in ReloadedFile::ALL.iter().zip(&totals.reloads.0) {
        if reload.last.is_some() {
            for (outcome, n) in RELOAD_OUTCOMES.iter().zip(reload.outcomes) {
                family.count(&[file.name(), outcome], n)?;
            }
        }
    }
    Ok(())
}
