//! `POST …/audio/transcriptions` and `translations`. vLLM streams the frames of its chat; OpenAI,
//! llama.cpp and Mistral send typed frames. Unstreamed, the text is at the top level, beside a usage that may count
//! seconds and no tokens.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};

/// The fields besides those of the chat's frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("delta", Field::DeltaText),
    ("text", Field::WholeText),
    ("choices[].delta", Field::Delta),
    ("choices[].delta.role", Field::Role),
    ("choices[].delta.content", Field::Content),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "transcription",
    operation: "transcription",
    route: Some("/v1/audio/transcriptions"),
    paths: &["/audio/transcriptions", "/audio/translations"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::openai::fields(FRAME));
