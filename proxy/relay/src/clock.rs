//! The data plane's only clock. Ticks are monotonic nanoseconds since the first reading in this process; wall time is
//! read once per exchange, for its start time, and once per response head with rate limits.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use meter::Tick;

/// Now, on the monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the only place where the data plane reads the monotonic clock"
)]
pub fn now() -> Tick {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(Instant::now);
    Tick(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Wall time in nanoseconds since 1970, for start times and the ends of providers' periods.
#[expect(clippy::disallowed_methods, reason = "the only place where the data plane reads the wall clock")]
pub fn wall_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
