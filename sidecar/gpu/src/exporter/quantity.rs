//! The quantities on an exporter's page: their unit, and the field each one sets. Law: an impossible
//! value is absent. DCGM writes 9223372036854775794 or 2147483632 for an unknown value.

use crate::sample::{Device, Throttle};

/// A quantity in the unit of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    UtilizationPercent,
    PowerWatts,
    PowerLimitWatts,
    EnergyMillijoules,
    EnergyMicrojoules,
    MemoryUsedMib,
    /// Free or reserved memory: total is the sum of used, free and reserved.
    MemoryRestMib,
    MemoryTotalMib,
    TemperatureCelsius,
    SmMegahertz,
    MemoryMegahertz,
    GraphicsRatio,
    SmRatio,
    TensorRatio,
    DramRatio,
    DramPercent,
    EncoderPercent,
    DecoderPercent,
    ThrottleBits,
    Corrected,
    Uncorrected,
}

const MIB: f64 = 1_048_576.0;

impl Quantity {
    /// Returns the value if it is possible.
    pub(super) fn plausible(self, value: f64) -> Option<f64> {
        let most = match self {
            Self::UtilizationPercent | Self::DramPercent | Self::EncoderPercent | Self::DecoderPercent => {
                100.0
            }
            Self::GraphicsRatio | Self::SmRatio | Self::TensorRatio | Self::DramRatio => 1.0,
            Self::PowerWatts | Self::PowerLimitWatts | Self::SmMegahertz | Self::MemoryMegahertz => 100_000.0,
            Self::TemperatureCelsius => 1_000.0,
            Self::MemoryUsedMib | Self::MemoryRestMib | Self::MemoryTotalMib => 1e8,
            Self::Corrected | Self::Uncorrected => 2_147_483_631.0,
            // 1,000 kW for thirty years.
            Self::EnergyMillijoules => 1e18,
            Self::EnergyMicrojoules | Self::ThrottleBits => 9.2e18,
        };
        (0.0..=most).contains(&value).then_some(value)
    }

    /// Returns true if a MIG instance has a value of its own; else the value is of the whole device.
    pub(super) fn is_per_instance(self) -> bool {
        matches!(
            self,
            Self::MemoryUsedMib
                | Self::MemoryRestMib
                | Self::MemoryTotalMib
                | Self::GraphicsRatio
                | Self::SmRatio
                | Self::TensorRatio
                | Self::DramRatio
        )
    }

    /// Sets the device's field, unless it is set already.
    pub(super) fn set(self, device: &mut Device, value: f64) {
        let Device { clocks, activity, .. } = device;
        match self {
            Self::UtilizationPercent => set_if_absent(&mut device.utilization_ppm, (value * 10_000.0) as u32),
            Self::PowerWatts => set_if_absent(&mut device.power_mw, (value * 1e3).round() as u64),
            Self::PowerLimitWatts => set_if_absent(&mut device.power_limit_mw, (value * 1e3).round() as u64),
            Self::EnergyMillijoules => set_if_absent(&mut device.energy_nj, value as u128 * 1_000_000),
            Self::EnergyMicrojoules => set_if_absent(&mut device.energy_nj, value as u128 * 1_000),
            Self::MemoryUsedMib => set_if_absent(&mut device.memory_used, (value * MIB) as u64),
            Self::MemoryRestMib => *device.memory_total.get_or_insert(0) += (value * MIB) as u64,
            Self::MemoryTotalMib => set_if_absent(&mut device.memory_total, (value * MIB) as u64),
            Self::TemperatureCelsius => set_if_absent(&mut device.temperature_c, value),
            Self::SmMegahertz => set_if_absent(&mut clocks.sm, (value * 1e6) as u64),
            Self::MemoryMegahertz => set_if_absent(&mut clocks.memory, (value * 1e6) as u64),
            Self::GraphicsRatio => set_if_absent(&mut activity.graphics, value),
            Self::SmRatio => set_if_absent(&mut activity.sm, value),
            Self::TensorRatio => set_if_absent(&mut activity.tensor, value),
            Self::DramRatio => set_if_absent(&mut activity.dram, value),
            Self::DramPercent => set_if_absent(&mut activity.dram, value / 100.0),
            Self::EncoderPercent => set_if_absent(&mut activity.encoder, value / 100.0),
            Self::DecoderPercent => set_if_absent(&mut activity.decoder, value / 100.0),
            Self::ThrottleBits => set_if_absent(&mut device.throttled, Throttle::from_bits(value as u64)),
            Self::Corrected => set_if_absent(&mut device.errors_corrected, value as u64),
            Self::Uncorrected => set_if_absent(&mut device.errors_uncorrected, value as u64),
        }
    }
}

fn set_if_absent<V>(field: &mut Option<V>, value: V) {
    field.get_or_insert(value);
}

/// Completes the total memory: NVIDIA's page has used, free and reserved memory, but no total.
pub(super) fn sum_memory(device: &mut Device) {
    if device.vendor == Some("nvidia") {
        let both = device.memory_total.zip(device.memory_used);
        device.memory_total = both.map(|(rest, used)| rest + used);
    }
}
