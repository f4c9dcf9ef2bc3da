//! Embeddings and pooling, of any server: only the prompt is counted. Servers have many names for this
//! number; the first rank that is present counts.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};

/// The fields of a frame.
pub(crate) const FRAME: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::Extra(0)),
    ("usage.total_tokens", Field::Extra(1)),
    // An answer in the shape of another path.
    ("usage.input_tokens", Field::Extra(0)),
    ("usage.completion_tokens", Field::OutputTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("prompt_eval_count", Field::Extra(2)),
    // Gemini's `:embedContent` and `:batchEmbedContents`.
    ("usageMetadata.promptTokenCount", Field::Extra(2)),
    ("meta.tokens.input_tokens", Field::Extra(3)),
    ("meta.billed_units.input_tokens", Field::Extra(4)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "embeddings",
    operation: "embeddings",
    route: Some("/v1/embeddings"),
    paths: &["/embeddings", "/embedding", "/api/embed", "/v2/embed", "/pooling", "/encode"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Eof,
    form: Form::Prompt,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(FRAME));
