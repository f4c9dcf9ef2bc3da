//! The readings of the accelerators. Invariant: a value that a device does not report is absent; a device that cannot
//! be read keeps its counters and loses its gauges.

use std::sync::Arc;

/// One device at one moment. `None`: the device does not report it, or the read failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuReading {
    /// Its identity, a UUID if it has one; the value of `hw_id`.
    pub id: Arc<str>,
    /// The vendor's name for the device.
    pub name: Arc<str>,
    /// Its vendor.
    pub vendor: Arc<str>,
    /// The version of its driver.
    pub driver_version: Arc<str>,
    /// The device of which it is a partition; empty for a whole device.
    pub parent: Arc<str>,
    /// The source of its samples: `nvml`, `dcgm` or `rocm`; `power` if energy is integrated from power.
    pub source: &'static str,
    /// The names of the upstreams it serves, as configured.
    pub upstreams: Vec<Arc<str>>,
    /// True if others than these upstreams use it too.
    pub shared: bool,
    /// True if its last sample is fresh.
    pub up: bool,
    /// Share of time in which it was busy, 0 to 1.
    pub utilization_ratio: Option<f64>,
    /// Memory in use, bytes.
    pub memory_usage_bytes: Option<u64>,
    /// Total memory, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Power drawn, watts.
    pub power_watts: Option<f64>,
    /// Power limit, watts.
    pub power_limit_watts: Option<f64>,
    /// Energy drawn since the baseline, joules; it never decreases.
    pub energy_joules: Option<f64>,
    /// Temperature, degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Memory errors, in the order of [`GPU_ERRORS`].
    pub errors: [Option<u64>; GPU_ERRORS.len()],
    /// Share of time in which each unit was busy, 0 to 1, in the order of [`GPU_UNITS`].
    pub activity_ratio: [Option<f64>; GPU_UNITS.len()],
    /// Clock rates in hertz, in the order of [`GPU_CLOCKS`].
    pub clock_hertz: [Option<f64>; GPU_CLOCKS.len()],
    /// Seconds in which it was throttled, in the order of [`GPU_THROTTLES`].
    pub throttled_seconds: [Option<f64>; GPU_THROTTLES.len()],
    /// Processes that use it.
    pub processes: Option<u64>,
    /// Restarts of its counters, and returns after a loss.
    pub resets: u64,
    /// Seconds that no sample covers.
    pub gap_seconds: f64,
}

/// Label values of `error_type`.
pub const GPU_ERRORS: [&str; 2] = ["corrected", "uncorrected"];

/// Label values of `unit`.
pub const GPU_UNITS: [&str; 6] = ["graphics", "sm", "tensor", "dram", "encoder", "decoder"];

/// Label values of `clock`.
pub const GPU_CLOCKS: [&str; 3] = ["graphics", "sm", "memory"];

/// Label values of `reason` of `tokenmeter_gpu_throttled_seconds_total`.
pub const GPU_THROTTLES: [&str; 7] =
    ["power_cap", "hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal", "sync_boost", "other"];

/// Label value of `what` of `tokenmeter_dropped_total` for a sample that failed or was rejected.
pub const GPU_SAMPLE: &str = "gpu_sample";

/// Label value of `what` of `tokenmeter_dropped_total` for an exchange settled without its share of the accelerators'
/// energy and time, because its notice came too late or the queue was full.
pub const GPU_SHARE: &str = "gpu_share";
