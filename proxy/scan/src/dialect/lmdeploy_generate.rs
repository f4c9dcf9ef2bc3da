//! LMDeploy's own `POST /generate`: SGLang's keys with the opposite meaning: text and ids are those of this
//! frame only.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::sglang_generate::{ELEMENT, FRAME};
use crate::field::Fields;
use crate::request::Key;

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "lmdeploy_generate",
    operation: "text_completion",
    route: Some("/generate"),
    paths: &[],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[Key::Prompt, Key::InputIds],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(&[FRAME, ELEMENT].concat()));
