//! SGLang's own `POST /generate`. The frame is the choice, numbered at the top level, and repeats text and
//! ids from the start of the answer. [`crate::frame`] takes the difference to the longest frame so far,
//! since a complete stop string is removed again. Several answers, unstreamed, come as an array.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::request::{CountMember, Key};

/// The fields of a frame.
pub(crate) const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("index", Field::Index),
    ("text", Field::Content),
    ("output_ids", Field::Ids),
    ("output_ids[]", Field::Varying),
    ("meta_info", Field::Details),
    ("meta_info.id", Field::Id),
    ("meta_info.finish_reason", Field::Finish),
    ("meta_info.finish_reason.type", Field::Finish),
    ("meta_info.prompt_tokens", Field::Count(Count::Input)),
    ("meta_info.completion_tokens", Field::Count(Count::Output)),
    ("meta_info.cached_tokens", Field::Count(Count::InputCached)),
    ("meta_info.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("object", Field::Object),
    ("error", Field::Error),
];

/// The fields of each element of an array.
pub(crate) const ELEMENT: &[(&str, Field)] = &[
    ("[]", Field::Choice),
    ("[].index", Field::Index),
    ("[].text", Field::Content),
    ("[].output_ids", Field::Ids),
    ("[].meta_info", Field::Details),
    ("[].meta_info.id", Field::Id),
    ("[].meta_info.finish_reason", Field::Finish),
    ("[].meta_info.finish_reason.type", Field::Finish),
    ("[].meta_info.prompt_tokens", Field::Count(Count::Input)),
    ("[].meta_info.completion_tokens", Field::Count(Count::Output)),
    ("[].meta_info.cached_tokens", Field::Count(Count::InputCached)),
    ("[].meta_info.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("[].error", Field::Error),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "sglang_generate",
    operation: "text_completion",
    route: Some("/generate"),
    paths: &["/vertex_generate"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[Key::Text, Key::InputIds],
    answer_counts: &[CountMember::SamplingParams],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    // Vertex AI's form of the array.
    super::foreign::with(&[FRAME, ELEMENT].concat()).also_at("predictions[]", Field::Choice, "[]")
});
