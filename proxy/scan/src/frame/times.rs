//! The server's report of its own work in one frame. Servers write times in three units, mostly as
//! fractions; they become whole nanoseconds, and whole tokens. An impossible amount (negative, not finite,
//! beyond 2^53) counts as absent.

use crate::event::ServerReport;
use crate::field::Field;
use crate::json::Value;

/// The unit of a server's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Milliseconds,
    Seconds,
    Tokens,
}

/// Reads a number of the report; returns false if `field` is none.
pub(crate) fn take(times: &mut ServerReport, field: Field, value: Value<'_>) -> bool {
    let (slot, unit) = match field {
        Field::Queue(unit) => (&mut times.queue_ns, unit),
        Field::Prefill(unit) => (&mut times.prefill_ns, unit),
        Field::Decode(unit) => (&mut times.decode_ns, unit),
        Field::Drafted => (&mut times.draft_tokens, Unit::Tokens),
        Field::DraftAccepted => (&mut times.accepted_draft_tokens, Unit::Tokens),
        _ => return false,
    };
    if let Value::Number(number) = value {
        *slot = whole(number, unit).or(*slot);
    }
    true
}

fn whole(number: &[u8], unit: Unit) -> Option<u64> {
    const MAX: f64 = (1_u64 << 53) as f64;
    let number: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    let scale = match unit {
        Unit::Nanoseconds | Unit::Tokens => 1.0,
        Unit::Milliseconds => 1e6,
        Unit::Seconds => 1e9,
    };
    let amount = (number * scale).round();
    (number >= 0.0 && amount <= MAX).then_some(amount as u64)
}
