//! Samples of the semantic convention's token usage.

use std::fmt::Result;

use super::{by_attributes, is_inference};
use crate::cell::Count;
use crate::family::Family;
use crate::model::{MODALITIES, Usage};
use crate::proxy::DIRECTIONS;
use crate::totals::Totals;

/// Writes a count without modality.
pub(super) fn unknown(totals: &Totals, family: &mut Family, pick: impl Fn(&Usage) -> &Count) -> Result {
    inferences(totals, |labels, usage| by_modality(family, labels, MODALITIES[0], pick(usage).get()))
}

/// Writes prompt or generated tokens by modality; modalities that never occurred are omitted.
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

/// Writes the former metric, which has both directions in one family.
pub(super) fn legacy(totals: &Totals, family: &mut Family) -> Result {
    by_attributes(totals, |_, [operation, provider, model, address, port], cells| {
        let Some(legacy) = cells.legacy.get() else { return Ok(()) };
        DIRECTIONS.iter().zip([&legacy.input, &legacy.output]).try_for_each(|(direction, histogram)| {
            family.histogram(&[operation, provider, model, address, port, direction], &histogram.read())
        })
    })
}

/// Writes the counters of every attribute set of an inference.
fn inferences(totals: &Totals, mut write: impl FnMut([&str; 5], &Usage) -> Result) -> Result {
    by_attributes(totals, |attributes, labels, cells| match is_inference(attributes) {
        true => write(labels, &cells.usage),
        false => Ok(()),
    })
}

fn by_modality(family: &mut Family, labels: [&str; 5], modality: &str, n: u64) -> Result {
    let [operation, provider, model, address, port] = labels;
    family.count(&[operation, provider, model, address, port, modality], n)
}
