//! What a number on an exporter's page is: its unit, and the field it becomes. Law: a number that
//! cannot be is absent. DCGM writes 9223372036854775794, or 2147483632, for what it does not know.

use crate::sample::{Device, Throttle};

/// A quantity in the unit it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    UtilizationPercent,
    PowerWatts,
    PowerLimitWatts,
    EnergyMillijoules,
    EnergyMicrojoules,
    MemoryUsedMib,
    /// Free, and reserved: what the used ones lack of all.
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
    /// The value, if it can be one.
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
            // A thousand kilowatts for thirty years.
            Self::EnergyMillijoules => 1e18,
            Self::EnergyMicrojoules | Self::ThrottleBits => 9.2e18,
        };
        (0.0..=most).contains(&value).then_some(value)
    }

    /// Whether a part of a device has its own; else it is said of the whole.
    pub(super) fn is_of_parts(self) -> bool {
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

    /// Becomes a device's, unless that is known already.
    pub(super) fn set(self, device: &mut Device, value: f64) {
        let Device { clocks, activity, .. } = device;
        match self {
            Self::UtilizationPercent => keep(&mut device.utilization_ppm, (value * 10_000.0) as u32),
            Self::PowerWatts => keep(&mut device.power_mw, (value * 1e3).round() as u64),
            Self::PowerLimitWatts => keep(&mut device.power_limit_mw, (value * 1e3).round() as u64),
            Self::EnergyMillijoules => keep(&mut device.energy_nj, value as u128 * 1_000_000),
            Self::EnergyMicrojoules => keep(&mut device.energy_nj, value as u128 * 1_000),
            Self::MemoryUsedMib => keep(&mut device.memory_used, (value * MIB) as u64),
            Self::MemoryRestMib => *device.memory_total.get_or_insert(0) += (value * MIB) as u64,
            Self::MemoryTotalMib => keep(&mut device.memory_total, (value * MIB) as u64),
            Self::TemperatureCelsius => keep(&mut device.temperature_c, value),
            Self::SmMegahertz => keep(&mut clocks.sm, (value * 1e6) as u64),
            Self::MemoryMegahertz => keep(&mut clocks.memory, (value * 1e6) as u64),
            Self::GraphicsRatio => keep(&mut activity.graphics, value),
            Self::SmRatio => keep(&mut activity.sm, value),
            Self::TensorRatio => keep(&mut activity.tensor, value),
            Self::DramRatio => keep(&mut activity.dram, value),
            Self::DramPercent => keep(&mut activity.dram, value / 100.0),
            Self::EncoderPercent => keep(&mut activity.encoder, value / 100.0),
            Self::DecoderPercent => keep(&mut activity.decoder, value / 100.0),
            Self::ThrottleBits => keep(&mut device.throttled, Throttle::from_bits(value as u64)),
            Self::Corrected => keep(&mut device.errors_corrected, value as u64),
            Self::Uncorrected => keep(&mut device.errors_uncorrected, value as u64),
        }
    }
}

fn keep<V>(field: &mut Option<V>, value: V) {
    field.get_or_insert(value);
}

/// NVIDIA's page says used, free and reserved, and not what they are together.
pub(super) fn sum_memory(device: &mut Device) {
    if device.vendor == Some("nvidia") {
        let both = device.memory_total.zip(device.memory_used);
        device.memory_total = both.map(|(rest, used)| rest + used);
    }
}
