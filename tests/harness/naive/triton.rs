//! Triton's generate extension: text, or a list of texts, and nothing else with a meaning.

use serde_json::Value;

use super::Frame;
use super::facts::{Choice, FrameFacts, Lead};
use super::frame::{chars, each, says_error};

/// The facts of a frame.
pub(crate) fn facts(_outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if says_error(frame) {
        return Some(FrameFacts::lead(Lead::Error));
    }
    let text = match frame.get("text_output") {
        Some(list @ Value::Array(_)) => each(Some(list)).map(|text| chars(Some(text))).sum(),
        Some(text @ Value::String(_)) => chars(Some(text)),
        _ if frame.is_object() || frame.is_array() => return None,
        _ => return Some(FrameFacts::lead(Lead::Other)),
    };
    Some(FrameFacts::choice(Choice::new(0, None, [0, text, 0, 0, 0], false, None)))
}
