//! Triton's generate extension, `POST /v2/models/…/generate` and `generate_stream`: the model's
//! output tensors by name. The text has a name by convention; counts, ends and end marks do not
//! exist, and whether frames repeat the text depends on the model.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// What is looked for in a frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("text_output", Field::Content),
    ("text_output[]", Field::ContentPart),
    ("model_name", Field::Model),
    ("error", Field::Error),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(FRAME));
