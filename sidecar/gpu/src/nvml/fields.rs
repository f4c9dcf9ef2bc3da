//! The fields of a device and the NVML call of each, with its unit. Law: a call that fails, or that the library
//! lacks, leaves its field absent.

use std::sync::Arc;

use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device as Handle, Nvml};

use crate::sample::{Activity, Clocks, Device, Throttle, cut};

/// Reads all fields but the energy counter, which the session reads first.
pub(super) fn read(handle: &Handle<'_>) -> Device {
    let memory = handle.memory_info().ok();
    let clock = |clock| handle.clock_info(clock).ok().map(|mhz| u64::from(mhz) * 1_000_000);
    let errors = |kind| handle.total_ecc_errors(kind, EccCounter::Aggregate).ok();
    Device {
        uuid: handle.uuid().map(|uuid| cut(&uuid).into()).unwrap_or_default(),
        name: handle.name().ok().map(|name| cut(&name)),
        vendor: Some("nvidia"),
        utilization_ppm: handle.utilization_rates().ok().map(|rates| rates.gpu.min(100) * 10_000),
        memory_used: memory.as_ref().map(|memory| memory.used),
        memory_total: memory.as_ref().map(|memory| memory.total),
        power_mw: handle.power_usage().ok().map(u64::from),
        temperature_c: handle.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
        clocks: Clocks {
            graphics: clock(Clock::Graphics),
            sm: clock(Clock::SM),
            memory: clock(Clock::Memory),
        },
        throttled: handle.current_throttle_reasons().ok().map(|bits| Throttle::from_bits(bits.bits())),
        activity: Activity {
            encoder: handle.encoder_utilization().ok().map(|said| percent(said.utilization)),
            decoder: handle.decoder_utilization().ok().map(|said| percent(said.utilization)),
            ..Activity::default()
        },
        // Only the count: process ids mean nothing inside a container.
        processes: handle.running_compute_processes_count().ok(),
        errors_corrected: errors(MemoryError::Corrected),
        errors_uncorrected: errors(MemoryError::Uncorrected),
        power_limit_mw: handle.enforced_power_limit().ok().map(u64::from),
        ..Device::default()
    }
}

/// Returns the MIG instances of a device. Energy and power exist for the whole device only.
pub(super) fn instances(handle: &Handle<'_>, parent: &Device) -> Vec<Device> {
    let most = handle.mig_device_count().unwrap_or(0);
    let instance = |number| {
        let instance = handle.mig_device_by_index(number).ok()?;
        let memory = instance.memory_info().ok();
        Some(Device {
            uuid: cut(&instance.uuid().ok()?).into(),
            name: instance.name().ok().map(|name| cut(&name)),
            vendor: parent.vendor,
            driver: parent.driver.clone(),
            parent: Some(Arc::clone(&parent.uuid)),
            memory_used: memory.as_ref().map(|memory| memory.used),
            memory_total: memory.as_ref().map(|memory| memory.total),
            processes: instance.running_compute_processes_count().ok(),
            ..Device::default()
        })
    };
    (0..most).filter_map(instance).collect()
}

/// Reads the activity between two samples of the performance monitor (GPM).
pub(super) fn activity<'nvml>(
    nvml: &'nvml Nvml,
    before: &GpmSample<'nvml>,
    now: &GpmSample<'nvml>,
    activity: &mut Activity,
) {
    const METRICS: [GpmMetricId; 4] =
        [GpmMetricId::GraphicsUtil, GpmMetricId::SmUtil, GpmMetricId::AnyTensorUtil, GpmMetricId::DramBwUtil];
    let Ok(said) = gpm_metrics_get(nvml, before, now, &METRICS) else { return };
    let fields = [&mut activity.graphics, &mut activity.sm, &mut activity.tensor, &mut activity.dram];
    for (field, said) in fields.into_iter().zip(said) {
        *field = said.ok().map(|said| said.value / 100.0).filter(|part| (0.0..=1.0).contains(part));
    }
}

fn percent(percent: u32) -> f64 {
    f64::from(percent.min(100)) / 100.0
}
