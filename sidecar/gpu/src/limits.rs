//! The bounds of this room, each with its unit and its reason.

use std::time::Duration;

/// The shortest time between two samples. NVML's own counters move ten to fifty times a second.
pub const PERIOD_MIN: Duration = Duration::from_millis(100);

/// The longest time between two samples: settling an exchange waits for one.
pub const PERIOD_MAX: Duration = Duration::from_secs(60);

/// Devices that are kept apart; a machine has sixteen at most. What an exporter lists beyond is
/// left out, and said.
pub const DEVICES: usize = 128;

/// Knots of a curve: an hour of busy seconds. Beyond, older ones are thinned: see `attribution.md`.
pub const KNOTS: usize = 4096;

/// How long an energy counter may stand still before it counts as silent. dcgm-exporter refreshes its
/// page every 30 s by default; until then the growth is not yet seen, rather than none.
pub const HOLD: Duration = Duration::from_secs(60);

/// How long after an exchange ended its notice may come. A notice waits for a local tokenizer's
/// count at most; what has not come by then was dropped.
pub const LATE: Duration = Duration::from_secs(60);

/// Ended exchanges that may wait for the sample that covers their end, the queue to this thread and
/// those it has together. It bounds memory: each is about 1.5 KiB, 256 bytes here and the rest the
/// exchange's record, so 12 MiB in all. At one sample a second that is 8192 exchanges a second; behind
/// an exporter that refreshes its page every 30 s, 270. Who finds no room goes on without its energy.
pub const WAITING: usize = 8192;

/// How long the last sample may be waited for, when all is to end. The rest of the end is quick.
pub const ENDING: Duration = Duration::from_millis(1500);

/// Bytes of a device's name, its driver's or its host's that are kept.
pub const NAME_BYTES: usize = 128;

/// Samples that are skipped, at most, between two attempts to reach a driver that is away.
pub const BACKOFF_SAMPLES: u32 = 60;

/// How long the first answer of NVML may take: it opens every device.
pub const OPENING: Duration = Duration::from_secs(10);
