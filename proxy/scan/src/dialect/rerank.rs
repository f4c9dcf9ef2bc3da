//! Reranking, scoring and classifying, of any server: as for embeddings, only the prompt is counted.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::embeddings::fields;
use crate::field::Fields;

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "rerank",
    operation: "rerank",
    route: Some("/v1/rerank"),
    paths: &[
        "/v1/rerank",
        "/v2/rerank",
        "/rerank",
        "/v1/reranking",
        "/reranking",
        "/v1/score",
        "/score",
        "/classify",
        "/generative_scoring",
    ],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Eof,
    form: Form::Prompt,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(fields);
