//! The label values of the GPUs' metrics.

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
