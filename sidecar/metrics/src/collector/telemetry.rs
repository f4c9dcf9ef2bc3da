//! Samples of telemetry about telemetry.

use std::fmt::Result;

use crate::family::Family;
use crate::gpu::{GPU_SAMPLE, GPU_SHARE};
use crate::telemetry::{DROPPED_SIGNALS, OUTCOMES, SIGNALS, SignalReading};
use crate::totals::Totals;

pub(super) fn items(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |signal, reading| {
        let outcomes = OUTCOMES.iter().zip(reading.outcomes());
        outcomes.into_iter().try_for_each(|(outcome, n)| family.count(&[signal, outcome], n))
    })
}

pub(super) fn queued(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |signal, reading| family.count(&[signal], reading.queued))
}

pub(super) fn up(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |signal, reading| reading.up.map_or(Ok(()), |up| family.count(&[signal], u64::from(up))))
}

pub(super) fn export(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |signal, reading| family.external_histogram(&[signal], &reading.export_seconds))
}

/// Writes the losses of the control plane: exports, samples of accelerators, and exchanges' shares of them. A process
/// without accelerators has no series of their losses.
pub(super) fn dropped(totals: &Totals, family: &mut Family) -> Result {
    if !totals.gpus.is_empty() || totals.gpu_samples_lost > 0 {
        family.count(&[GPU_SAMPLE], totals.gpu_samples_lost)?;
    }
    if !totals.gpus.is_empty() || totals.shares.lost > 0 {
        family.count(&[GPU_SHARE], totals.shares.lost)?;
    }
    for (what, reading) in DROPPED_SIGNALS.iter().zip(&totals.telemetry.signals) {
        if let Some(reading) = reading {
            family.count(&[what], reading.dropped())?;
        }
    }
    Ok(())
}

fn each(totals: &Totals, mut write: impl FnMut(&str, &SignalReading) -> Result) -> Result {
    for (signal, reading) in SIGNALS.iter().zip(&totals.telemetry.signals) {
        if let Some(reading) = reading {
            write(signal, reading)?;
        }
    }
    Ok(())
}
