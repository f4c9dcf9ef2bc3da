//! What the control plane reads of the accelerators. The law: what a device does not say stays
//! unsaid, and a device that cannot be read keeps its counters and loses its gauges.

use std::sync::Arc;

/// One device at one moment. Absent is "the device does not say", or "it could not be read".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuReading {
    /// Its identity, a UUID if it has one: the value of `hw_id`.
    pub id: Arc<str>,
    /// What it is called by its maker.
    pub name: Arc<str>,
    /// Its maker.
    pub vendor: Arc<str>,
    /// The version of its driver.
    pub driver_version: Arc<str>,
    /// The device it is a slice of; empty if it is whole.
    pub parent: Arc<str>,
    /// Who says so: `nvml`, `dcgm` or `rocm`; `power` where the energy is reckoned from the power.
    pub source: &'static str,
    /// The upstreams it serves, by name; none if nobody said.
    pub upstreams: Vec<Arc<str>>,
    /// Whether others but these upstreams use it.
    pub shared: bool,
    /// Whether its last sample is fresh.
    pub up: bool,
    /// Share of time in which anything ran, 0 to 1.
    pub utilization_ratio: Option<f64>,
    /// Memory in use, bytes.
    pub memory_usage_bytes: Option<u64>,
    /// Memory there is, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Power drawn, watts.
    pub power_watts: Option<f64>,
    /// Power it may draw, watts.
    pub power_limit_watts: Option<f64>,
    /// Energy drawn since the baseline, joules; never less than before.
    pub energy_joules: Option<f64>,
    /// Temperature, degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Memory errors, in the order of [`GPU_ERRORS`].
    pub errors: [Option<u64>; GPU_ERRORS.len()],
    /// How busy its parts were, 0 to 1, in the order of [`GPU_UNITS`].
    pub activity_ratio: [Option<f64>; GPU_UNITS.len()],
    /// Its clocks in hertz, in the order of [`GPU_CLOCKS`].
    pub clock_hertz: [Option<f64>; GPU_CLOCKS.len()],
    /// Seconds in which it was held back, in the order of [`GPU_THROTTLES`].
    pub throttled_seconds: [Option<f64>; GPU_THROTTLES.len()],
    /// Processes that use it.
    pub processes: Option<u64>,
    /// How often its counters began again, or it was gone and came back.
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

/// Label value of `what` of `tokenmeter_dropped_total` for a sample that could not be taken or was
/// refused.
pub const GPU_SAMPLE: &str = "gpu_sample";

/// Label value of `what` of `tokenmeter_dropped_total` for an exchange that went on without its share
/// of the accelerators' energy and time, since its notice came too late or found no room.
pub const GPU_SHARE: &str = "gpu_share";
