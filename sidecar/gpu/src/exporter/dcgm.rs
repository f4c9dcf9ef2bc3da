//! Metric names of dcgm-exporter: the default ones, and those that are often enabled. As of
//! versions 4.5 to 4.8.

use super::{Dialect, Quantity};
use crate::source::SourceName;

pub(super) const DCGM: Dialect = Dialect {
    source: SourceName::Dcgm,
    vendor: "nvidia",
    name_prefix: "DCGM_FI_",
    names: &[
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Quantity::EnergyMillijoules),
        ("DCGM_FI_DEV_POWER_USAGE", Quantity::PowerWatts),
        ("DCGM_FI_DEV_POWER_MGMT_LIMIT", Quantity::PowerLimitWatts),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Quantity::PowerLimitWatts),
        ("DCGM_FI_DEV_GPU_UTIL", Quantity::UtilizationPercent),
        ("DCGM_FI_DEV_FB_USED", Quantity::MemoryUsedMib),
        ("DCGM_FI_DEV_FB_FREE", Quantity::MemoryRestMib),
        ("DCGM_FI_DEV_FB_RESERVED", Quantity::MemoryRestMib),
        ("DCGM_FI_DEV_GPU_TEMP", Quantity::TemperatureCelsius),
        ("DCGM_FI_DEV_SM_CLOCK", Quantity::SmMegahertz),
        ("DCGM_FI_DEV_MEM_CLOCK", Quantity::MemoryMegahertz),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Quantity::GraphicsRatio),
        ("DCGM_FI_PROF_SM_ACTIVE", Quantity::SmRatio),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Quantity::TensorRatio),
        ("DCGM_FI_PROF_DRAM_ACTIVE", Quantity::DramRatio),
        ("DCGM_FI_DEV_ENC_UTIL", Quantity::EncoderPercent),
        ("DCGM_FI_DEV_DEC_UTIL", Quantity::DecoderPercent),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", Quantity::ThrottleBits),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Quantity::ThrottleBits),
        ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", Quantity::Corrected),
        ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", Quantity::Uncorrected),
    ],
    uuid: &["UUID"],
    index: &["gpu"],
    name: &["modelName"],
    hostname: &["Hostname"],
    driver: &["DCGM_FI_DRIVER_VERSION"],
    part: &["GPU_I_ID"],
};
