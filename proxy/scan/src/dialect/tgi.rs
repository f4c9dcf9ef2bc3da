//! TGI's own `POST /generate_stream`, `/generate` and `/`. Each frame of a stream is one token; the last one
//! repeats the text and, on request, has the details. Unstreamed, the text stands alone, at `/` in an array.
//! The ordinal of the last token is the answer's count if the details have none. The sequences discarded by
//! `best_of` were generated too.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};

/// The fields of a frame. Rank 0 is the token's ordinal, from 1.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("index", Field::Extra(0)),
    ("token", Field::Token),
    ("token.text", Field::Content),
    ("generated_text", Field::Generated),
    ("details", Field::Details),
    ("details.finish_reason", Field::Finish),
    ("details.generated_tokens", Field::Count(Count::Output)),
    ("details.input_length", Field::Count(Count::Input)),
    ("details.prefill", Field::PromptList),
    ("details.tokens", Field::Ids),
    ("details.best_of_sequences[].generated_tokens", Field::Addend),
    ("error", Field::Error),
];

/// The fields of each element of an array. Elements are numbered by position.
const ELEMENT: &[(&str, Field)] = &[
    ("[]", Field::Choice),
    ("[].generated_text", Field::Generated),
    ("[].details", Field::Details),
    ("[].details.finish_reason", Field::Finish),
    ("[].details.generated_tokens", Field::Count(Count::Output)),
    ("[].details.input_length", Field::Count(Count::Input)),
    ("[].details.prefill", Field::PromptList),
    ("[].details.tokens", Field::Ids),
    ("[].details.best_of_sequences[].generated_tokens", Field::Addend),
    ("[].error", Field::Error),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "tgi",
    operation: "text_completion",
    route: Some("/generate"),
    paths: &["/generate_stream"],
    error_shape: ErrorShape::Tgi,
    end_mark: EndMark::Finish,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(&[FRAME, ELEMENT].concat()));
