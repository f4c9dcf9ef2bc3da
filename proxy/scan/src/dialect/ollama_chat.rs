//! Ollama's own `POST /api/chat`: one JSON value a line. A tool's arguments are an object, and
//! nothing in it counts. The last line has the counts, of which zero ones are left out, and the
//! times in nanoseconds: loading the model, which the request waited for, prompt and answer.

use std::sync::LazyLock;

use crate::field::{Field, Fields};
use crate::frame::Unit;

/// What Ollama's two dialects share.
pub(crate) const COMMON: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("model", Field::Model),
    ("logprobs", Field::Logprobs),
    ("done", Field::Stop),
    ("done_reason", Field::Finish),
    ("prompt_eval_count", Field::InputTokens),
    ("eval_count", Field::OutputTokens),
    ("load_duration", Field::Queue(Unit::Nanoseconds)),
    ("prompt_eval_duration", Field::Prefill(Unit::Nanoseconds)),
    ("eval_duration", Field::Decode(Unit::Nanoseconds)),
    ("error", Field::Error),
];

/// What is looked for in a line.
const FRAME: &[(&str, Field)] = &[
    ("message", Field::Delta),
    ("message.content", Field::Content),
    ("message.thinking", Field::Reasoning),
    ("message.tool_calls[].function.name", Field::Tool),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[COMMON, FRAME].concat()));
