//! `POST …/v1/completions`: text in `choices[].text`, no roles; one choice per prompt and answer.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};
use crate::request::{Key, TOP_COUNTS};

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "openai_completions",
    operation: "text_completion",
    route: Some("/v1/completions"),
    paths: &["/v1/completions"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[Key::Prompt],
    answer_counts: TOP_COUNTS,
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    super::openai::fields_and_lists(&[
        ("choices[].text", Field::Content),
        ("choices[].logprobs.tokens", Field::Logprobs),
    ])
});
