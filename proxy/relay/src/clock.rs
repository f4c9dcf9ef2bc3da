//! The data plane's only clock. Ticks are monotonic nanoseconds since the first reading in this process. A turn of a
//! worker, a poll of one task, reads the monotonic clock once. It begins after bytes have arrived, so they all have
//! that tick, however long the turn processes them. Wall time is read once per exchange, for its start time, and once
//! per response head with rate limits.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use meter::Tick;

/// The tick of this thread's current turn.
#[derive(Clone, Copy)]
enum TurnTick {
    /// No turn is in progress: every call reads the clock.
    NoTurn,
    /// This turn has not read the clock.
    Unread,
    /// This turn has read the clock.
    Read(Tick),
}

thread_local! {
    static TURN: Cell<TurnTick> = const { Cell::new(TurnTick::NoTurn) };
}

/// Begins a turn of this thread.
pub(crate) fn begin_turn() {
    TURN.set(TurnTick::Unread);
}

/// Ends the turn of this thread.
pub(crate) fn end_turn() {
    TURN.set(TurnTick::NoTurn);
}

/// Returns the present tick; within a turn, that of the turn's first call.
pub fn now() -> Tick {
    match TURN.get() {
        TurnTick::Read(tick) => tick,
        TurnTick::Unread => {
            let tick = read();
            TURN.set(TurnTick::Read(tick));
            tick
        }
        TurnTick::NoTurn => read(),
    }
}

/// Reads the monotonic clock. For durations within a turn; otherwise use [`now`].
#[expect(
    clippy::disallowed_methods,
    reason = "the only place where the data plane reads the monotonic clock"
)]
pub(crate) fn read() -> Tick {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_has_one_tick() {
        let later = |than: Tick| {
            while read() <= than {
                std::hint::spin_loop();
            }
        };
        begin_turn();
        let first = now();
        later(first);
        assert_eq!(now(), first);
        begin_turn();
        let second = now();
        assert!(second > first);
        end_turn();
        later(second);
        assert!(now() > second);
    }
}
