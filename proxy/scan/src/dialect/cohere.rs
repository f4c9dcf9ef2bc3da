//! Cohere's `POST …/v2/chat`, as vLLM serves it: typed events with all content in `delta`. Counts are
//! written as fractions (`12.0`). Cohere's invoice has the billed units, and the model used `tokens`, which include
//! those that Cohere adds to the prompt.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::{FOREIGN_INPUT, FOREIGN_OUTPUT};

/// The fields of a typed frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("error", Field::Error),
    ("id", Field::Id),
    ("model", Field::Model),
    ("index", Field::Varying),
    ("delta", Field::Delta),
    ("delta.message.content.text", Field::Content),
    ("delta.message.content.thinking", Field::Reasoning),
    ("delta.message.tool_plan", Field::Reasoning),
    ("delta.message.tool_calls.function.name", Field::Tool),
    ("delta.message.tool_calls.function.arguments", Field::Tool),
    ("delta.finish_reason", Field::Finish),
];

/// The fields of an unstreamed answer.
const WHOLE: &[(&str, Field)] = &[
    ("message", Field::Whole),
    ("message.content[].text", Field::WholeText),
    ("message.content[].thinking", Field::WholeReasoning),
    ("message.tool_plan", Field::WholeReasoning),
    ("message.tool_calls[].function.name", Field::WholeTool),
    ("message.tool_calls[].function.arguments", Field::WholeTool),
    ("finish_reason", Field::WholeFinish),
    ("usage", Field::Usage),
    ("usage.billed_units.input_tokens", Field::Count(Count::Input)),
    ("usage.billed_units.output_tokens", Field::Count(Count::Output)),
    ("usage.tokens.input_tokens", Field::Count(Count::InputUsed)),
    ("usage.tokens.output_tokens", Field::Count(Count::OutputUsed)),
    ("usage.cached_tokens", Field::Count(Count::InputCached)),
    // An answer in the shape of another path.
    ("usage.prompt_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.completion_tokens", Field::Extra(FOREIGN_OUTPUT)),
    ("usage.input_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.output_tokens", Field::Extra(FOREIGN_OUTPUT)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "cohere",
    operation: "chat",
    route: Some("/v2/chat"),
    paths: &["/v2/chat"],
    error_shape: ErrorShape::Cohere,
    end_mark: EndMark::Done,
    form: Form::Typed,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    super::foreign::with(&[FRAME, WHOLE].concat())
        .also_at("delta.usage", Field::InnerUsage, "usage")
        .with_unknown("usage")
        .with_unknown("delta.usage")
});
