//! The part of a batch that goes into the file of one month.

use crate::audit_event::AuditEvent;
use crate::source::{DeviceTotal, Gap};
use crate::{EnergyRow, Row, Sums, TotalKey};

/// The items of one month in a batch.
#[derive(Default)]
pub(crate) struct MonthPart<'b> {
    pub rows: Vec<&'b Row>,
    pub energies: Vec<&'b EnergyRow>,
    pub devices: Vec<&'b DeviceTotal>,
    pub totals: Vec<(&'b TotalKey, &'b Sums)>,
    pub audit: Vec<&'b AuditEvent>,
    pub gaps: &'b [Gap],
}

impl MonthPart<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.energies.is_empty()
            && self.devices.is_empty()
            && self.totals.is_empty()
            && self.audit.is_empty()
            && self.gaps.is_empty()
    }

    pub(crate) fn take(&mut self, other: Option<Self>) {
        let Some(mut other) = other else { return };
        self.rows.append(&mut other.rows);
        self.energies.append(&mut other.energies);
        self.devices.append(&mut other.devices);
        self.totals.append(&mut other.totals);
    }
}
