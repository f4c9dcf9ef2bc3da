//! llama.cpp's own `POST /completion`, `/completions` and `/infill`. The frame is the choice. Each has a
//! running count (`tokens_predicted`) that includes tokens without a frame; the one with `stop` ends its
//! choice. Several prompts, unstreamed, come as an array of such objects. The times of the last frame count
//! the first token to the prompt. Those of earlier frames are running, and those in an array belong to one
//! answer each, so neither are the request's.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::Unit;
use crate::request::{Key, TOP_COUNTS};

/// The fields of a frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("index", Field::Index),
    ("content", Field::Content),
    ("tokens", Field::Ids),
    ("tokens[]", Field::Varying),
    ("completion_probabilities", Field::Logprobs),
    ("stop", Field::Stop),
    ("stop_type", Field::Finish),
    ("tokens_predicted", Field::Count(Count::Output)),
    ("tokens_evaluated", Field::Count(Count::Input)),
    ("timings.cache_n", Field::Count(Count::InputCached)),
    ("timings.prompt_ms", Field::Prefill(Unit::Milliseconds)),
    ("timings.predicted_ms", Field::Decode(Unit::Milliseconds)),
    ("timings.draft_n", Field::Drafted),
    ("timings.draft_n_accepted", Field::DraftAccepted),
    ("prompt_progress", Field::Progress),
    ("model", Field::Model),
    ("error", Field::Error),
];

/// The fields of each element of an array.
const ELEMENT: &[(&str, Field)] = &[
    ("[]", Field::Choice),
    ("[].index", Field::Index),
    ("[].content", Field::Content),
    ("[].tokens", Field::Ids),
    ("[].tokens[]", Field::Varying),
    ("[].completion_probabilities", Field::Logprobs),
    ("[].stop", Field::Stop),
    ("[].stop_type", Field::Finish),
    ("[].tokens_predicted", Field::Count(Count::Output)),
    ("[].tokens_evaluated", Field::Count(Count::Input)),
    ("[].timings.cache_n", Field::Count(Count::InputCached)),
    ("[].model", Field::Model),
    ("[].error", Field::Error),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "llamacpp_completion",
    operation: "text_completion",
    route: Some("/completion"),
    paths: &["/completions", "/completion", "/infill"],
    error_shape: ErrorShape::LlamaCpp,
    end_mark: EndMark::Finish,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[Key::Prompt],
    answer_counts: TOP_COUNTS,
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(&[FRAME, ELEMENT].concat()));
