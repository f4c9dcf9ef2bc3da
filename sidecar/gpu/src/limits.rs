//! Bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// The shortest time between two samples. NVML's own counters move ten to fifty times a second.
pub const PERIOD_MIN: Duration = Duration::from_millis(100);

/// The longest time between two samples: settling an exchange waits for one.
pub const PERIOD_MAX: Duration = Duration::from_secs(60);

/// Devices that are tracked; a machine has sixteen at most. Further devices of an exporter are
/// dropped.
pub const MAX_DEVICES: usize = 128;

/// Points of a curve: an hour of busy seconds. Beyond, older ones are thinned; see `attribution.md`.
pub const CURVE_MAX_POINTS: usize = 4096;

/// The time after which an unchanged energy counter counts as silent. dcgm-exporter refreshes its
/// page every 30 s by default; until then the growth is not visible yet.
pub const COUNTER_STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The time after an exchange's end within which its notice may come. The longest delay is a local tokenizer's
/// count; after that the record was dropped.
pub const NOTICE_TIMEOUT: Duration = Duration::from_secs(60);

/// Ended exchanges that may wait for the sample that covers their end, in the queue to the sampling thread and
/// in its attribution together. Bounds memory: each is about 1.5 KiB, 256 bytes here and the rest the
/// exchange's record, so 12 MiB in all. At one sample a second that is 8192 exchanges a second; behind
/// an exporter that refreshes its page every 30 s, 270. Beyond the bound, an exchange goes on without its energy.
pub const WAITING_MAX_ITEMS: usize = 8192;

/// The longest wait of a shutdown for the last sample. The rest of the shutdown is quick.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);

/// The pods of a device whose names are kept, for the log; a device has at most a few dozen slices. That there are
/// several is all that attribution needs.
pub const DEVICE_MAX_PODS: usize = 64;

/// The maximum bytes kept of a device's name, its driver's or its host's.
pub const NAME_MAX_BYTES: usize = 128;

/// The maximum number of samples skipped between two attempts to open a driver.
pub const BACKOFF_MAX_SAMPLES: u32 = 60;

/// The timeout of the first NVML call, which opens every device.
pub const DRIVER_OPEN_TIMEOUT: Duration = Duration::from_secs(10);
