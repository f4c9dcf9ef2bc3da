//! The events of a WebSocket at `…/realtime`: a type decides, and each answer is alone.

use scan::{Finish, Scope, Usage};
use serde_json::Value;

use super::facts::{Chars, Choice, FrameFacts, Lead};
use super::frame::{chars, says_error};
use super::words::{self, RESPONSES};
use super::{Frame, counts};

/// The facts of an event.
pub(crate) fn facts(outside: Frame, frame: &Value) -> Option<FrameFacts> {
    if outside.unstreamed {
        return None;
    }
    if !frame.is_object() {
        return Some(FrameFacts::lead(Lead::Other));
    }
    let kind = frame.get("type").and_then(Value::as_str).unwrap_or_default();
    let lengths: fn(u32) -> Chars = match kind {
        "response.output_text.delta"
        | "response.text.delta"
        | "response.output_audio_transcript.delta"
        | "response.audio_transcript.delta"
        | "transcription.delta"
        | "conversation.item.input_audio_transcription.delta" => |n| [0, n, 0, 0, 0],
        "response.refusal.delta" => |n| [0, 0, n, 0, 0],
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => |n| [n, 0, 0, 0, 0],
        "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta"
        | "response.mcp_call_arguments.delta"
        | "response.code_interpreter_call_code.delta" => |n| [0, 0, 0, n, 0],
        "response.output_audio.delta" | "response.audio.delta" | "response.audio.transcript.delta" => {
            |n| [0, 0, 0, 0, n]
        }
        _ => {
            let facts = match kind {
                "response.created" => FrameFacts::lead(Lead::Progress),
                "" => FrameFacts::lead(Lead::Other),
                "response.done"
                | "transcription.done"
                | "conversation.item.input_audio_transcription.completed"
                | "conversation.item.input_audio_transcription.failed" => end(frame, kind)?,
                _ => FrameFacts::lead(Lead::Meta),
            };
            return Some(facts.or_error(says_error(frame) || kind == "error"));
        }
    };
    let piece = Choice::new(0, None, lengths(chars(frame.get("delta"))), false, None);
    let usage = super::responses::beside_part(frame)?;
    Some(FrameFacts { usage, ..FrameFacts::choice(piece) }.or_error(says_error(frame)))
}

/// The end of an answer.
fn end(frame: &Value, kind: &str) -> Option<FrameFacts> {
    let status = frame.pointer("/response/status").and_then(Value::as_str);
    let reason = words::finish(frame.pointer("/response/status_details/reason"), RESPONSES)?;
    let (lead, finish, done) = match status {
        _ if kind.ends_with(".failed") => (Some(Lead::Error), None, true),
        Some("failed") => (Some(Lead::Error), None, true),
        Some("cancelled") => (None, None, false),
        Some("incomplete") => (None, Some(reason.unwrap_or(Finish::Other)), true),
        _ => (None, Some(reason.unwrap_or(Finish::Stop)), true),
    };
    let usage = usage(frame)?;
    let lead = lead.or((!done && usage.is_none()).then_some(Lead::Meta));
    let choices = finish.map(|reason| Choice::finish(0, reason)).into_iter().collect();
    Some(FrameFacts { lead, choices, usage, done, ..FrameFacts::default() })
}

/// The usage of the response, else that beside it.
fn usage(frame: &Value) -> Option<Option<Usage>> {
    let inner = frame.pointer("/response/usage").filter(|usage| usage.is_object());
    let outer = frame.get("usage").filter(|usage| usage.is_object());
    let counts = match (inner, outer) {
        (Some(usage), _) | (None, Some(usage)) => counts::of_usage(usage)?,
        (None, None) => return Some(None),
    };
    Some((!counts.is_empty()).then_some(Usage { scope: Scope::Whole, counts }))
}
