//! Triton's generate extension: text, or a list of texts, and nothing else that has a meaning.

use serde_json::Value;

use super::Frame;
use super::frame::{chars, each, says_error};
use super::told::{Choice, Lead, Told};

/// What a frame tells.
pub(crate) fn told(_outside: Frame, frame: &Value) -> Option<Told> {
    if says_error(frame) {
        return Some(Told::lead(Lead::Error));
    }
    let text = match frame.get("text_output") {
        Some(list @ Value::Array(_)) => each(Some(list)).map(|text| chars(Some(text))).sum(),
        Some(text @ Value::String(_)) => chars(Some(text)),
        _ if frame.is_object() || frame.is_array() => return None,
        _ => return Some(Told::lead(Lead::Other)),
    };
    Some(Told::choice(Choice::new(0, None, [0, text, 0, 0, 0], false, None)))
}
