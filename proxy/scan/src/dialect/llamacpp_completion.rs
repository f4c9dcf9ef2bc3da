//! llama.cpp's own `POST /completion`, `/completions` and `/infill`. The frame is the choice; each
//! carries a running count (`tokens_predicted`), which sees tokens that send no frame; the one with
//! `stop` ends its choice. Several prompts, unstreamed, come as an array of such objects. The times
//! of the last frame count the first token to the prompt; those of earlier frames are running, and
//! those in an array are of one answer each, so neither are the request's.

use std::sync::LazyLock;

use crate::field::{Field, Fields};
use crate::frame::Unit;

/// What is looked for in a frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("index", Field::Index),
    ("content", Field::Content),
    ("tokens", Field::Ids),
    ("tokens[]", Field::Varying),
    ("completion_probabilities", Field::Logprobs),
    ("stop", Field::Stop),
    ("stop_type", Field::Finish),
    ("tokens_predicted", Field::OutputTokens),
    ("tokens_evaluated", Field::InputTokens),
    ("timings.cache_n", Field::CachedTokens),
    ("timings.prompt_ms", Field::Prefill(Unit::Milliseconds)),
    ("timings.predicted_ms", Field::Decode(Unit::Milliseconds)),
    ("timings.draft_n", Field::Drafted),
    ("timings.draft_n_accepted", Field::DraftAccepted),
    ("prompt_progress", Field::Progress),
    ("model", Field::Model),
    ("error", Field::Error),
];

/// The same in each element of an array.
const ELEMENT: &[(&str, Field)] = &[
    ("[]", Field::Choice),
    ("[].index", Field::Index),
    ("[].content", Field::Content),
    ("[].tokens", Field::Ids),
    ("[].tokens[]", Field::Varying),
    ("[].completion_probabilities", Field::Logprobs),
    ("[].stop", Field::Stop),
    ("[].stop_type", Field::Finish),
    ("[].tokens_predicted", Field::OutputTokens),
    ("[].tokens_evaluated", Field::InputTokens),
    ("[].timings.cache_n", Field::CachedTokens),
    ("[].model", Field::Model),
    ("[].error", Field::Error),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, ELEMENT].concat()));
