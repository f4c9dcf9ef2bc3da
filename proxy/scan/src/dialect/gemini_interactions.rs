//! Gemini's `POST …/interactions`. Typed events, with the type in `event_type`; the last one has the interaction with
//! its usage and its status, which is the only reason of an end. Steps and their deltas carry the content; the counts
//! beside a step are ignored, because they are repeated in the last event. Requests of the first revision, of which
//! Vertex AI still documents the events, get `content.*` and `outputs` in the place of `step.*` and `steps`. As in
//! `generateContent`, the tokens of the prompt exclude those of tool results, and those of the answer the thoughts.
//! Errors have a `message` and a `code` that is a word, as OpenAI's.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};

/// The fields of a typed frame. Rank 0 counts the tool results in the prompt.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("event_type", Field::Type),
    ("error", Field::Error),
    ("index", Field::Varying),
    ("delta", Field::Delta),
    ("delta.text", Field::Content),
    ("delta.content.text", Field::Reasoning),
    ("delta.name", Field::Tool),
    ("delta.arguments", Field::Tool),
    ("delta.data", Field::Audio),
    ("interaction", Field::Inner),
    ("interaction.id", Field::Id),
    ("interaction.model", Field::Model),
    ("interaction.agent", Field::Model),
    ("interaction.service_tier", Field::ServiceTier),
    ("interaction.status", Field::InnerStatus),
    ("interaction.usage", Field::InnerUsage),
    ("interaction.usage.total_input_tokens", Field::InputTokens),
    ("interaction.usage.total_tool_use_tokens", Field::Extra(0)),
    ("interaction.usage.total_cached_tokens", Field::CachedTokens),
    ("interaction.usage.total_output_tokens", Field::OutputTokens),
    ("interaction.usage.total_thought_tokens", Field::ReasoningTokens),
    ("interaction.usage.input_tokens_by_modality[]", Field::Modality),
    ("interaction.usage.input_tokens_by_modality[].modality", Field::ModalityName),
    ("interaction.usage.input_tokens_by_modality[].tokens", Field::Extra(1)),
    ("interaction.usage.output_tokens_by_modality[]", Field::OutputModality),
    ("interaction.usage.output_tokens_by_modality[].modality", Field::ModalityName),
    ("interaction.usage.output_tokens_by_modality[].tokens", Field::Extra(1)),
];

/// The fields of an unstreamed answer.
const WHOLE: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("agent", Field::Model),
    ("service_tier", Field::ServiceTier),
    ("status", Field::Status),
    ("steps", Field::Whole),
    ("steps[].content[].text", Field::WholeText),
    ("steps[].summary[].text", Field::WholeReasoning),
    ("steps[].name", Field::WholeTool),
    ("outputs", Field::Whole),
    ("outputs[].text", Field::WholeText),
    ("outputs[].summary[].text", Field::WholeReasoning),
    ("outputs[].name", Field::WholeTool),
    ("usage", Field::Usage),
    ("usage.total_input_tokens", Field::InputTokens),
    ("usage.total_tool_use_tokens", Field::Extra(0)),
    ("usage.total_cached_tokens", Field::CachedTokens),
    ("usage.total_output_tokens", Field::OutputTokens),
    ("usage.total_thought_tokens", Field::ReasoningTokens),
    ("usage.input_tokens_by_modality[]", Field::Modality),
    ("usage.input_tokens_by_modality[].modality", Field::ModalityName),
    ("usage.input_tokens_by_modality[].tokens", Field::Extra(1)),
    ("usage.output_tokens_by_modality[]", Field::OutputModality),
    ("usage.output_tokens_by_modality[].modality", Field::ModalityName),
    ("usage.output_tokens_by_modality[].tokens", Field::Extra(1)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "gemini_interactions",
    operation: "generate_content",
    route: Some("/v1beta/interactions"),
    paths: &["/interactions"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::Typed,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, WHOLE].concat()));
