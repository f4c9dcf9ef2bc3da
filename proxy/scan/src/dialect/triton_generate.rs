//! Triton's generate extension, `POST /v2/models/…/generate` and `generate_stream`: the model's output
//! tensors by name. The name of the text is a convention. There are no counts, finish reasons or end marks,
//! and the model determines if frames repeat the text.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};

/// The fields of a frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("text_output", Field::Content),
    ("text_output[]", Field::ContentPart),
    ("model_name", Field::Model),
    ("error", Field::Error),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "triton_generate",
    operation: "text_completion",
    route: Some("/v2/models/{model}/generate"),
    paths: &[],
    error_shape: ErrorShape::Text,
    end_mark: EndMark::Eof,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(FRAME));
