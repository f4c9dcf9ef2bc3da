//! Ollama's own `POST /api/generate`: like its chat, with the text at the top level of the line.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::ollama_chat::COMMON;
use crate::field::{Field, Fields};

/// The fields of a line.
const FRAME: &[(&str, Field)] = &[("response", Field::Content), ("thinking", Field::Reasoning)];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "ollama_generate",
    operation: "text_completion",
    route: Some("/api/generate"),
    paths: &["/api/generate"],
    error_shape: ErrorShape::Text,
    end_mark: EndMark::Finish,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(&[COMMON, FRAME].concat()));
