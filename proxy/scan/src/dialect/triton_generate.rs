//! Triton's generate extension, `POST /v2/models/…/generate` and `generate_stream`: the model's output
//! tensors by name. The name of the text is a convention. There are no counts, finish reasons or end marks,
//! and the model determines if frames repeat the text.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// The fields of a frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("text_output", Field::Content),
    ("text_output[]", Field::ContentPart),
    ("model_name", Field::Model),
    ("error", Field::Error),
];

/// The fields of this dialect.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(FRAME));
