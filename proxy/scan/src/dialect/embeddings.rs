//! Embeddings and pooling, of any server: only the prompt is counted. Servers have many names for this
//! number; the first rank that is present counts.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::usage;
use crate::counts::Count;
use crate::field::{Field, Fields};

/// The fields of a frame.
const FRAME: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("usage.prompt_tokens", Field::Extra(0)),
    ("usage.input_tokens", Field::Extra(0)),
    ("usage.total_tokens", Field::Extra(1)),
    ("prompt_eval_count", Field::Extra(2)),
    // Gemini's `:embedContent` and `:batchEmbedContents`.
    ("usageMetadata.promptTokenCount", Field::Extra(2)),
    ("usageMetadata.promptTokensDetails[]", Field::Modality),
    ("usageMetadata.promptTokensDetails[].modality", Field::PartName),
    ("usageMetadata.promptTokensDetails[].tokenCount", Field::Extra(1)),
    // Cohere's invoice has the billed units.
    ("meta.billed_units.input_tokens", Field::Extra(3)),
    ("meta.billed_units.image_tokens", Field::Count(Count::InputImage)),
    ("meta.tokens.input_tokens", Field::Extra(4)),
];

/// Builds the tree of the fields.
pub(super) fn fields() -> Fields {
    usage::fields(FRAME, &[]).with_unknown("meta.billed_units").with_unknown("usageMetadata")
}

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "embeddings",
    operation: "embeddings",
    route: Some("/v1/embeddings"),
    paths: &["/embeddings", "/embedding", "/embed", "/api/embed", "/v2/embed", "/pooling", "/encode"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Eof,
    form: Form::Prompt,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(fields);
