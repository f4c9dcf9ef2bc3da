//! The data plane's only clock. Ticks are monotonic nanoseconds since the process first asked;
//! wall time is read once per exchange, to stamp its beginning.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use meter::Tick;

/// Now, on the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the one place where the data plane asks for the time")]
pub fn now() -> Tick {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let origin = *ORIGIN.get_or_init(Instant::now);
    Tick(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Wall time in nanoseconds since 1970, for stamping only.
#[expect(clippy::disallowed_methods, reason = "the one place where the data plane reads the wall clock")]
pub fn wall_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
