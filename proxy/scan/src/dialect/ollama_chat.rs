//! Ollama's own `POST /api/chat`: one JSON value per line. A tool's arguments are an object, whose content
//! is not counted. The last line has the counts, without those of zero, and the times in nanoseconds:
//! loading the model, while the request waited, prompt and answer.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::Unit;

/// The fields that Ollama's two dialects share.
pub(crate) const COMMON: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("model", Field::Model),
    ("logprobs", Field::Logprobs),
    ("done", Field::Stop),
    ("done_reason", Field::Finish),
    ("prompt_eval_count", Field::Count(Count::Input)),
    ("prompt_eval_cached_count", Field::Count(Count::InputCached)),
    ("eval_count", Field::Count(Count::Output)),
    ("load_duration", Field::Queue(Unit::Nanoseconds)),
    ("prompt_eval_duration", Field::Prefill(Unit::Nanoseconds)),
    ("eval_duration", Field::Decode(Unit::Nanoseconds)),
    ("error", Field::Error),
];

/// The fields of a line.
const FRAME: &[(&str, Field)] = &[
    ("message", Field::Delta),
    ("message.content", Field::Content),
    ("message.thinking", Field::Reasoning),
    ("message.tool_calls[].function.name", Field::Tool),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "ollama_chat",
    operation: "chat",
    route: Some("/api/chat"),
    paths: &["/api/chat"],
    error_shape: ErrorShape::Text,
    end_mark: EndMark::Finish,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(&[COMMON, FRAME].concat()));
