//! Metric names of AMD's device-metrics-exporter, compared without regard to case: the page
//! has them in lower case, the documentation in upper case.

use super::{Dialect, Quantity};
use crate::source::SourceName;

pub(super) const ROCM: Dialect = Dialect {
    source: SourceName::Rocm,
    vendor: "amd",
    name_prefix: "GPU_",
    names: &[
        ("GPU_ENERGY_CONSUMED", Quantity::EnergyMicrojoules),
        // For MI3xx, MI2xx, and others.
        ("GPU_PACKAGE_POWER", Quantity::PowerWatts),
        ("GPU_AVERAGE_PACKAGE_POWER", Quantity::PowerWatts),
        ("GPU_POWER_USAGE", Quantity::PowerWatts),
        ("GPU_GFX_ACTIVITY", Quantity::UtilizationPercent),
        ("GPU_UMC_ACTIVITY", Quantity::DramPercent),
        ("GPU_USED_VRAM", Quantity::MemoryUsedMib),
        ("GPU_TOTAL_VRAM", Quantity::MemoryTotalMib),
        ("GPU_JUNCTION_TEMPERATURE", Quantity::TemperatureCelsius),
    ],
    uuid: &["gpu_uuid", "uuid", "serial_number"],
    index: &["gpu_id", "gpu"],
    name: &["card_model", "card_series"],
    hostname: &["hostname"],
    driver: &["driver_version"],
    part: &[],
};
