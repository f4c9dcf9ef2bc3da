//! Samples of the accelerators.

use std::fmt::Result;

use crate::family::Family;
use crate::gpu::{GPU_ERRORS, GpuReading};
use crate::totals::Totals;

/// Writes one number for each device that reports it.
pub(super) fn number(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&GpuReading) -> Option<f64>,
) -> Result {
    each(totals, |gpu| pick(gpu).map_or(Ok(()), |n| family.number(&[&gpu.id], n)))
}

/// Writes one whole number for each device that reports it.
pub(super) fn count(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&GpuReading) -> Option<u64>,
) -> Result {
    each(totals, |gpu| pick(gpu).map_or(Ok(()), |n| family.count(&[&gpu.id], n)))
}

/// Writes as [`number`], for a metric with the label `hw_type`.
pub(super) fn hardware(
    totals: &Totals,
    family: &mut Family,
    pick: impl Fn(&GpuReading) -> Option<f64>,
) -> Result {
    each(totals, |gpu| pick(gpu).map_or(Ok(()), |n| family.number(&[&gpu.id, TYPE], n)))
}

/// Writes one number for each name of a closed list that the device reports.
pub(super) fn listed<const N: usize>(
    totals: &Totals,
    family: &mut Family,
    names: &[&str; N],
    pick: impl Fn(&GpuReading) -> &[Option<f64>; N],
) -> Result {
    each(totals, |gpu| {
        for (name, n) in names.iter().zip(pick(gpu)) {
            if let Some(n) = n {
                family.number(&[&gpu.id, name], *n)?;
            }
        }
        Ok(())
    })
}

pub(super) fn errors(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |gpu| {
        for (name, n) in GPU_ERRORS.iter().zip(gpu.errors) {
            if let Some(n) = n {
                family.count(&[&gpu.id, TYPE, name], n)?;
            }
        }
        Ok(())
    })
}

pub(super) fn info(totals: &Totals, family: &mut Family) -> Result {
    each(totals, |gpu| {
        let shared = if gpu.shared { "true" } else { "false" };
        let GpuReading { id, name, vendor, driver_version, parent, source, .. } = gpu;
        let upstreams = gpu.upstreams.join(",");
        family.count(&[id, name, vendor, driver_version, parent, source, &upstreams, shared], 1)
    })
}

pub(super) fn memory_utilization(gpu: &GpuReading) -> Option<f64> {
    let limit = gpu.memory_limit_bytes.filter(|limit| *limit > 0)?;
    Some(gpu.memory_usage_bytes? as f64 / limit as f64)
}

fn each(totals: &Totals, write: impl FnMut(&GpuReading) -> Result) -> Result {
    totals.gpus.iter().try_for_each(write)
}

/// The `hw.type` of every device.
const TYPE: &str = "gpu";
