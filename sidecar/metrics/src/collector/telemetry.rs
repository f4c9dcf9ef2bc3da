//! Samples of telemetry about telemetry.

use std::fmt::Result;

use crate::family::Family;
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

pub(super) fn dropped(totals: &Totals, family: &mut Family) -> Result {
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
