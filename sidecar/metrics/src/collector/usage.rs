//! The samples of the semantic convention's token usage.

use std::fmt::Result;

use super::{flavours, infers};
use crate::cell::Count;
use crate::family::Family;
use crate::model::{MODALITIES, Usage};
use crate::proxy::DIRECTIONS;
use crate::totals::Totals;

/// A count of which nobody says what kind of content it was.
pub(super) fn unknown(totals: &Totals, family: &mut Family, pick: impl Fn(&Usage) -> &Count) -> Result {
    inferences(totals, |labels, usage| by_modality(family, labels, MODALITIES[0], pick(usage).get()))
}

/// Prompt or generated tokens; kinds of content that were never met are left out.
pub(super) fn modalities(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&Usage) -> &[Count; MODALITIES.len()],
) -> Result {
    inferences(totals, |labels, usage| {
        for (modality, n) in MODALITIES.iter().zip(pick(usage)) {
            if *modality == MODALITIES[0] || n.get() > 0 {
                by_modality(family, labels, modality, n.get())?;
            }
        }
        Ok(())
    })
}

/// The former metric, which had both directions in one.
pub(super) fn legacy(totals: &Totals, family: &mut Family) -> Result {
    flavours(totals, |_, [operation, provider, model, address, port], cells| {
        let Some(legacy) = cells.legacy.get() else { return Ok(()) };
        DIRECTIONS.iter().zip([&legacy.input, &legacy.output]).try_for_each(|(direction, histogram)| {
            family.histogram(&[operation, provider, model, address, port, direction], &histogram.read())
        })
    })
}

/// The counters of every flavour that infers.
fn inferences(totals: &Totals, mut write: impl FnMut([&str; 5], &Usage) -> Result) -> Result {
    flavours(totals, |flavour, labels, cells| match infers(flavour) {
        true => write(labels, &cells.usage),
        false => Ok(()),
    })
}

fn by_modality(family: &mut Family, labels: [&str; 5], modality: &str, n: u64) -> Result {
    let [operation, provider, model, address, port] = labels;
    family.count(&[operation, provider, model, address, port, modality], n)
}
