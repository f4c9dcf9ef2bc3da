//! An answer of unknown shape, from an unknown endpoint or to an unreadable request. The frames of a stream
//! are counted and not read, except for members that nearly every server has in the same place: the model's
//! name, an error, and a usage object with the names of OpenAI's two APIs, Anthropic's or Ollama's. Counts
//! in a stream are running ones: no mark shows which is the last.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};
use crate::frame::CACHE_WRITE_5M;
use crate::request::{ALL_COUNTS, ALL_LISTS};

/// The names of a usage object. Rank 0 counts if nothing else does; ranks 1 and 2 are parts of the prompt
/// that Anthropic counts separately.
const USAGE: &[(&str, Field)] = &[
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::InputTokens),
    ("usage.input_tokens", Field::InputTokens),
    ("usage.completion_tokens", Field::OutputTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("usage.total_tokens", Field::Extra(0)),
    ("usage.cache_read_input_tokens", Field::Extra(1)),
    ("usage.cache_creation_input_tokens", Field::Extra(2)),
    ("usage.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    ("usage.cache_creation.ephemeral_1h_input_tokens", Field::CacheWrite1hTokens),
    ("usage.prompt_tokens_details.cached_tokens", Field::CachedTokens),
    ("usage.input_tokens_details.cached_tokens", Field::CachedTokens),
    ("response.usage", Field::Usage),
    ("response.usage.input_tokens", Field::InputTokens),
    ("response.usage.output_tokens", Field::OutputTokens),
    ("response.usage.input_tokens_details.cached_tokens", Field::CachedTokens),
    ("message.usage", Field::Usage),
    ("message.usage.input_tokens", Field::InputTokens),
    ("message.usage.cache_read_input_tokens", Field::Extra(1)),
    ("message.usage.cache_creation_input_tokens", Field::Extra(2)),
    ("message.usage.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    ("message.usage.cache_creation.ephemeral_1h_input_tokens", Field::CacheWrite1hTokens),
    ("prompt_eval_count", Field::InputTokens),
    ("eval_count", Field::OutputTokens),
];

/// The other fields.
const FRAME: &[(&str, Field)] =
    &[("id", Field::Id), ("model", Field::Model), ("object", Field::Object), ("error", Field::Error)];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "unknown",
    operation: "text_completion",
    route: None,
    paths: &[],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Eof,
    form: Form::Opaque,
    fields: &FIELDS,
    prompt_lists: ALL_LISTS,
    answer_counts: ALL_COUNTS,
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, USAGE].concat()));
