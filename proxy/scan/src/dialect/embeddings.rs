//! Embeddings and pooling, of any server: a prompt is counted, and what became of it is not looked
//! at. Servers have many names for the one number; the first of the ranks that is said counts.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// What is looked for.
pub(crate) const FRAME: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::Extra(0)),
    ("usage.total_tokens", Field::Extra(1)),
    // Of an answer in the shape of another path.
    ("usage.input_tokens", Field::Extra(0)),
    ("usage.completion_tokens", Field::OutputTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("prompt_eval_count", Field::Extra(2)),
    ("meta.tokens.input_tokens", Field::Extra(3)),
    ("meta.billed_units.input_tokens", Field::Extra(4)),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(FRAME));
