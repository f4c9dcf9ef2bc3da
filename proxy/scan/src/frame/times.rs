//! The server's own times, as one frame says them. Servers write them in three units, mostly as
//! fractions; we keep whole nanoseconds. What is no time (negative, not finite, beyond 2^53 ns) is
//! not said.

use crate::event::ServerTimes;
use crate::field::Field;
use crate::json::Value;

/// What a server's number of time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Milliseconds,
    Seconds,
}

/// Takes in a time; false if `field` is none.
pub(crate) fn take(times: &mut ServerTimes, field: Field, value: Value<'_>) -> bool {
    let (slot, unit) = match field {
        Field::Queue(unit) => (&mut times.queue_ns, unit),
        Field::Prefill(unit) => (&mut times.prefill_ns, unit),
        Field::Decode(unit) => (&mut times.decode_ns, unit),
        _ => return false,
    };
    if let Value::Number(number) = value {
        *slot = nanoseconds(number, unit).or(*slot);
    }
    true
}

fn nanoseconds(number: &[u8], unit: Unit) -> Option<u64> {
    const MOST: f64 = (1_u64 << 53) as f64;
    let number: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    let scale = match unit {
        Unit::Nanoseconds => 1.0,
        Unit::Milliseconds => 1e6,
        Unit::Seconds => 1e9,
    };
    let ns = (number * scale).round();
    (number >= 0.0 && ns <= MOST).then_some(ns as u64)
}
