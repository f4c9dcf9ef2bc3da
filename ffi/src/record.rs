//! The values of a record.

use meter::TokenType;

use crate::entry::entry;
use crate::handles::{RECORDS, RecordHandle};
use crate::numbers::TokenKind;
use crate::slice::{self, Text};
use crate::status::{Fault, Status};
use crate::values::{Number, RateKind, TextKind};

/// Writes the count of one type of tokens, a `tm_token_type`, and its source, a `tm_provenance`. `provenance` may be
/// NULL. `TM_STATUS_ABSENT` if nothing counted the tokens: `provenance` is `TM_PROVENANCE_NONE`, and `count` is not
/// written.
///
/// # Safety
/// `count` and `provenance` are NULL or point to a number, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_record_tokens(
    record: RecordHandle,
    token_type: u32,
    count: *mut u64,
    provenance: *mut u32,
) -> Status {
    entry(|| {
        let kind = TokenKind::of(token_type).ok_or_else(|| unknown("token type", token_type))?;
        slice::check(count)?;
        RECORDS.with(record.id, |finished| {
            let tokens = &finished.record.tokens;
            let (number, is_input) = match kind {
                TokenKind::InputAll => (tokens.input(), true),
                TokenKind::OutputAll => (tokens.output(), false),
                kind => {
                    let one = TokenType::ALL.into_iter().find(|one| TokenKind::of_type(*one) == kind);
                    let one = one.ok_or(Status::Value)?;
                    (tokens.of(one), one.is_input())
                }
            };
            let source = finished.source(is_input);
            if !provenance.is_null() {
                // SAFETY: the caller's contract.
                unsafe { slice::write(provenance, source as u32) }?;
            }
            if source == crate::numbers::Source::None {
                return Ok(Status::Absent);
            }
            // SAFETY: the caller's contract.
            unsafe { slice::write(count, number) }?;
            Ok(Status::Ok)
        })
    })
}

/// Writes a number of the record, a `tm_number`. `TM_STATUS_ABSENT` if it is not known.
///
/// # Safety
/// `value` is NULL or points to a number, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_record_number(record: RecordHandle, number: u32, value: *mut u64) -> Status {
    entry(|| {
        let kind = Number::of(number).ok_or_else(|| unknown("number", number))?;
        RECORDS.with(record.id, |finished| match kind.in_record(&finished.record) {
            // SAFETY: the caller's contract.
            Some(known) => unsafe { slice::write(value, known) }.map(|()| Status::Ok),
            None => Ok(Status::Absent),
        })
    })
}

/// Writes a rate of the record, a `tm_rate`. `TM_STATUS_ABSENT` if it is not known.
///
/// # Safety
/// `value` is NULL or points to a number, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_record_rate(record: RecordHandle, rate: u32, value: *mut f64) -> Status {
    entry(|| {
        let kind = RateKind::of(rate).ok_or_else(|| unknown("rate", rate))?;
        RECORDS.with(record.id, |finished| match kind.in_record(&finished.record) {
            // SAFETY: the caller's contract.
            Some(known) => unsafe { slice::write(value, known) }.map(|()| Status::Ok),
            None => Ok(Status::Absent),
        })
    })
}

/// Writes a text of the record, a `tm_text_value`. `TM_STATUS_ABSENT` if it is not known.
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_record_text(record: RecordHandle, value: u32, text: *mut Text) -> Status {
    entry(|| {
        let kind = TextKind::of(value).ok_or_else(|| unknown("text", value))?;
        RECORDS.with(record.id, |finished| match kind.in_record(&finished.record, &finished.charge) {
            // SAFETY: the caller's contract.
            Some(known) => unsafe { slice::write_text(text, &known.replace('\0', "\u{fffd}")) },
            None => Ok(Status::Absent),
        })
    })
}

/// Writes the record as one JSON object. Values that are not known are left out. The members:
///
/// - the values of `tm_text_value` and `tm_number` by their names in lower case: `model`, `first_token_ns`, …
/// - `output_rate`, `input_rate`, `visible_chars_rate` and `concurrency`: the values of `tm_rate`
/// - `tokens`: an object with the counts above 0, by the names of `tm_token_type` in lower case
/// - `input_provenance` and `output_provenance`: the names of `tm_provenance` in lower case
/// - `streamed`: true if the response was a stream
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_record_json(record: RecordHandle, text: *mut Text) -> Status {
    entry(|| {
        let json = RECORDS.with(record.id, |finished| Ok(finished.json().to_string()))?;
        // SAFETY: the caller's contract.
        unsafe { slice::write_text(text, &json) }
    })
}

/// Frees a record.
#[unsafe(no_mangle)]
pub extern "C" fn tm_record_free(record: RecordHandle) -> Status {
    entry(|| RECORDS.take(record.id).map(|_| Status::Ok))
}

fn unknown(noun: &str, number: u32) -> Fault {
    Fault::new(Status::Value, format!("there is no {noun} {number}"))
}
