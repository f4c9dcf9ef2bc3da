//! Gemini's `POST …/interactions`. Typed events, with the type in `event_type`; the last one has the interaction with
//! its usage and its status, which is the only reason of an end. Steps and their deltas carry the content; the counts
//! beside a step are ignored, because they are repeated in the last event. Requests of the first revision, of which
//! Vertex AI still documents the events, get `content.*` and `outputs` in the place of `step.*` and `steps`. As in
//! `generateContent`, the tokens of the prompt exclude those of tool results, and those of the answer the thoughts.
//! Errors have a `message` and a `code` that is a word, as OpenAI's.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};

/// The fields of a typed frame.
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
];

/// The fields of an unstreamed answer. Rank 0 counts the tool results in the prompt.
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
    ("usage.total_input_tokens", Field::Count(Count::Input)),
    ("usage.total_tool_use_tokens", Field::Extra(0)),
    ("usage.total_cached_tokens", Field::Count(Count::InputCached)),
    ("usage.total_output_tokens", Field::Count(Count::Output)),
    ("usage.total_thought_tokens", Field::Count(Count::OutputReasoning)),
    ("usage.total_tokens", Field::Count(Count::Total)),
    ("usage.cached_tokens_by_modality[]", Field::CachedModality),
    ("usage.cached_tokens_by_modality[].modality", Field::PartName),
    ("usage.cached_tokens_by_modality[].tokens", Field::Extra(1)),
    ("usage.input_tokens_by_modality[]", Field::Modality),
    ("usage.input_tokens_by_modality[].modality", Field::PartName),
    ("usage.input_tokens_by_modality[].tokens", Field::Extra(1)),
    ("usage.output_tokens_by_modality[]", Field::OutputModality),
    ("usage.output_tokens_by_modality[].modality", Field::PartName),
    ("usage.output_tokens_by_modality[].tokens", Field::Extra(1)),
    ("usage.tool_use_tokens_by_modality[]", Field::ToolModality),
    ("usage.tool_use_tokens_by_modality[].modality", Field::PartName),
    ("usage.tool_use_tokens_by_modality[].tokens", Field::Extra(1)),
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
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    super::foreign::with(&[FRAME, WHOLE].concat())
        .also_at("interaction.usage", Field::InnerUsage, "usage")
        .with_unknown("usage")
        .with_unknown("interaction.usage")
});
