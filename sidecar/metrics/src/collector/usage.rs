//! The samples of the semantic convention's token usage.

use std::fmt::Result;

use super::flavours;
use crate::cell::Count;
use crate::family::Family;
use crate::model::{MODALITIES, Usage};
use crate::proxy::DIRECTIONS;
use crate::totals::Totals;

/// A count of which nobody says what kind of content it was.
pub(super) fn unknown(totals: &Totals, family: &mut Family, pick: impl Fn(&Usage) -> &Count) -> Result {
    flavours(totals, |[operation, provider, model], cells| {
        family.count(&[operation, provider, model, MODALITIES[0]], pick(&cells.usage).get())
    })
}

/// Generated tokens; kinds of content that were never met are left out.
pub(super) fn output(totals: &Totals, family: &mut Family) -> Result {
    flavours(totals, |[operation, provider, model], cells| {
        for (modality, n) in MODALITIES.iter().zip(&cells.usage.output) {
            if *modality == MODALITIES[0] || n.get() > 0 {
                family.count(&[operation, provider, model, modality], n.get())?;
            }
        }
        Ok(())
    })
}

/// The former metric, which had both directions in one.
pub(super) fn legacy(totals: &Totals, family: &mut Family) -> Result {
    flavours(totals, |[operation, provider, model], cells| {
        let usage = [&cells.usage.operation_input, &cells.usage.operation_output];
        DIRECTIONS.iter().zip(usage).try_for_each(|(direction, histogram)| {
            family.histogram(&[operation, provider, model, direction], &histogram.read())
        })
    })
}
