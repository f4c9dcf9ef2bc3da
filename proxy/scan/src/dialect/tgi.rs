//! TGI's own `POST /generate_stream`, `/generate` and `/`. Each frame of a stream is one token, and
//! says which; the last one repeats the text and, if asked, tells the details. Unstreamed, the text
//! stands alone, at `/` in an array. The last token's ordinal
//! is the answer's count where the details do not say it. The sequences that `best_of` threw away
//! were generated too.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// What is looked for in a frame. Rank 0 is the token's ordinal, from 1.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("index", Field::Extra(0)),
    ("token", Field::Token),
    ("token.text", Field::Content),
    ("generated_text", Field::Generated),
    ("details", Field::Details),
    ("details.finish_reason", Field::Finish),
    ("details.generated_tokens", Field::OutputTokens),
    ("details.input_length", Field::InputTokens),
    ("details.prefill", Field::PromptList),
    ("details.tokens", Field::Ids),
    ("details.best_of_sequences[].generated_tokens", Field::Addend),
    ("error", Field::Error),
];

/// The same in each element of an array; they are numbered by their place.
const ELEMENT: &[(&str, Field)] = &[
    ("[]", Field::Choice),
    ("[].generated_text", Field::Generated),
    ("[].details", Field::Details),
    ("[].details.finish_reason", Field::Finish),
    ("[].details.generated_tokens", Field::OutputTokens),
    ("[].details.input_length", Field::InputTokens),
    ("[].details.prefill", Field::PromptList),
    ("[].details.tokens", Field::Ids),
    ("[].details.best_of_sequences[].generated_tokens", Field::Addend),
    ("[].error", Field::Error),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, ELEMENT].concat()));
