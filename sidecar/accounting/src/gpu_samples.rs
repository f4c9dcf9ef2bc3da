//! Samples of the GPUs, and of their energy, time and cost that belong to no exchange. Invariant: a value that a device
//! does not report is absent; a device that cannot be read keeps its counters and loses its gauges.

use std::sync::Arc;

use gpu::{AttributionReading, Cost, Device, GpuReading, GpusReading, Prices, Throttle};
use metrics::{COST_PARTS, GPU_ERRORS, GPU_SAMPLE, GPU_SHARE, Metric, SampleWriter, Samples, units};

/// The latest readings of the GPUs. A clone shares them.
#[derive(Clone)]
pub(crate) struct GpuSamples {
    /// The upstreams' names, in the plan's order.
    pub(crate) upstreams: Arc<[Arc<str>]>,
    pub(crate) prices: Prices,
    pub(crate) gpus: Option<Arc<GpusReading>>,
    pub(crate) attribution: Arc<AttributionReading>,
}

impl GpuSamples {
    fn gpu(&self, gpu: &GpuReading, to: &mut SampleWriter) {
        let (device, id) = (&gpu.device, &*gpu.device.uuid);
        let shared = if gpu.shared() { "true" } else { "false" };
        let upstreams: Vec<&str> =
            gpu.upstreams.iter().filter_map(|at| self.upstreams.get(*at).map(|name| &**name)).collect();
        let about = [
            id,
            device.name.as_deref().unwrap_or_default(),
            device.vendor.unwrap_or_default(),
            device.driver.as_deref().unwrap_or_default(),
            device.parent.as_deref().unwrap_or_default(),
            gpu.source_name(),
            &upstreams.join(","),
            shared,
        ];
        to.count(Metric::GpuInfo, &about, 1);
        to.count(Metric::GpuUp, &[id], u64::from(gpu.up));
        to.number(Metric::HwEnergy, &[id, TYPE], gpu.energy_nj.map(joules));
        for (error, n) in GPU_ERRORS.into_iter().zip([device.errors_corrected, device.errors_uncorrected]) {
            to.count(Metric::HwErrors, &[id, TYPE, error], n);
        }
        for (reason, ns) in Throttle::ALL.into_iter().zip(gpu.throttled_ns) {
            to.number(Metric::GpuThrottled, &[id, reason.name()], ns as f64 / 1e9);
        }
        to.count(Metric::GpuResets, &[id], gpu.resets);
        to.number(Metric::GpuGap, &[id], gpu.gap_ns as f64 / 1e9);
        if gpu.up {
            gauges(device, to);
        }
    }

    fn attribution(&self, reading: &AttributionReading, to: &mut SampleWriter) {
        let mut devices: Vec<_> = reading.devices.iter().collect();
        devices.sort_by(|a, b| a.uuid.cmp(&b.uuid));
        for device in devices {
            let id = &*device.uuid;
            to.number(Metric::EnergyIdle, &[id], joules(device.idle_nj));
            to.number(Metric::EnergyUnattributed, &[id], joules(device.unattributed_nj));
            to.number(Metric::EnergyPending, &[id], joules(device.pending_nj));
            to.number(Metric::GpuSecondsIdle, &[id], seconds(device.idle_ns));
            to.number(Metric::GpuSecondsUnattributed, &[id], seconds(device.unattributed_ns));
            to.number(Metric::GpuSecondsPending, &[id], seconds(device.pending_ns));
            for (metric, cost) in [
                (Metric::GpuIdleCost, &device.idle_cost),
                (Metric::GpuUnattributedCost, &device.unattributed_cost),
            ] {
                for (part, usd) in COST_PARTS.into_iter().zip(cost_usd(cost, &self.prices)) {
                    to.number(metric, &[id, part], usd);
                }
            }
        }
    }
}

impl Samples for GpuSamples {
    fn write(&self, to: &mut SampleWriter) {
        let mut gpus: Vec<_> = self.gpus.iter().flat_map(|reading| &reading.gpus).collect();
        gpus.sort_by(|a, b| a.device.uuid.cmp(&b.device.uuid));
        gpus.iter().for_each(|gpu| self.gpu(gpu, to));
        self.attribution(&self.attribution, to);
        // A process without GPUs has no series of their losses.
        let lost_shares = self.attribution.late + self.attribution.refused;
        for (item, n) in [(GPU_SAMPLE, self.gpus.as_deref().map_or(0, lost)), (GPU_SHARE, lost_shares)] {
            to.count(Metric::Dropped, &[item], (!gpus.is_empty() || n > 0).then_some(n));
        }
    }
}

/// Returns the samples that failed or were rejected. A rejected sample counts as failed, too; where no device was ever
/// seen, only the readings themselves can be lost.
fn lost(reading: &GpusReading) -> u64 {
    match reading.gpus.is_empty() {
        true => reading.refused + u64::from(reading.broken),
        false => reading.failed,
    }
}

fn gauges(device: &Device, to: &mut SampleWriter) {
    let id = &*device.uuid;
    let watts = |milliwatts: Option<u64>| milliwatts.map(|mw| mw as f64 / 1e3);
    to.number(Metric::HwUtilization, &[id], device.utilization_ppm.map(|ppm| f64::from(ppm) / 1e6));
    to.count(Metric::HwMemoryUsage, &[id], device.memory_used);
    to.count(Metric::HwMemoryLimit, &[id], device.memory_total);
    let memory = device.memory_used.zip(device.memory_total.filter(|total| *total > 0));
    to.number(Metric::HwMemoryUtilization, &[id], memory.map(|(used, total)| used as f64 / total as f64));
    to.number(Metric::HwPower, &[id, TYPE], watts(device.power_mw));
    to.number(Metric::GpuPowerLimit, &[id], watts(device.power_limit_mw));
    to.number(Metric::HwTemperature, &[id, TYPE], device.temperature_c);
    for (unit, ratio) in device.activity.units() {
        to.number(Metric::GpuActivity, &[id, unit], ratio);
    }
    for (clock, hertz) in device.clocks.units() {
        to.number(Metric::GpuClock, &[id, clock], hertz.map(|hertz| hertz as f64));
    }
    to.count(Metric::GpuProcesses, &[id], device.processes.map(u64::from));
}

/// Returns a cost in US dollars, in the order of [`COST_PARTS`]; `None` where no price is set.
pub(crate) fn cost_usd(cost: &Cost, prices: &Prices) -> [Option<f64>; COST_PARTS.len()] {
    let usd = |pico: i128, price: u64| (price > 0).then(|| units(pico));
    [usd(cost.hours_pico, prices.hour_pico), usd(cost.energy_pico, prices.kwh_pico)]
}

pub(crate) fn joules(nanojoules: u128) -> f64 {
    nanojoules as f64 / 1e9
}

pub(crate) fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

/// The `hw.type` of every device.
const TYPE: &str = "gpu";

#[cfg(test)]
#[path = "gpu_samples_tests.rs"]
mod tests;
