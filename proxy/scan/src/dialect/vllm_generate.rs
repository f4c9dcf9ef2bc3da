//! vLLM's `POST /inference/v1/generate`, tokens in and tokens out: the frames of its OpenAI routes without
//! text, so each delta is empty and its ids are the count.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};
use crate::request::CountMember;

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "vllm_generate",
    operation: "text_completion",
    route: Some("/inference/v1/generate"),
    paths: &["/inference/v1/generate"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[CountMember::SamplingParams],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::openai::fields(&[("request_id", Field::Id)]));
