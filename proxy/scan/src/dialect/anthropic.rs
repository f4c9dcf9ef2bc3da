//! `POST …/messages`: Anthropic, vLLM, llama.cpp, SGLang, Ollama, LMDeploy. Typed events. The first has the
//! counts of the prompt, the last but one those of the answer, and each overwrites the counts before it,
//! name by name. The output count of the first event is ignored, as is an input that consists of its cached
//! part only. `index` numbers the blocks of one answer. `input_tokens` excludes cached input. An answer in
//! several passes lists them in `usage.iterations`. Dynamo sends a running usage beside each part.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::{CACHE_WRITE_5M, FOREIGN_INPUT, FOREIGN_OUTPUT};
use crate::name::Dimension;

/// The fields of a typed frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("error", Field::Error),
    ("index", Field::Varying),
    ("delta", Field::Delta),
    ("delta.text", Field::Content),
    ("delta.thinking", Field::Reasoning),
    ("delta.partial_json", Field::Tool),
    ("delta.stop_reason", Field::Finish),
    ("message", Field::Inner),
    ("message.id", Field::Id),
    ("message.model", Field::Model),
    ("message.usage.service_tier", Field::ServiceTier),
    ("message.usage.speed", Field::Dimension(Dimension::Speed)),
    ("message.usage.inference_geo", Field::Dimension(Dimension::Geography)),
    ("message.usage.iterations", Field::Intermediate),
];

/// The fields of an unstreamed answer; the usage is also that of the last typed frame.
const WHOLE: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("content", Field::Whole),
    ("content[].text", Field::WholeText),
    ("content[].thinking", Field::WholeReasoning),
    ("content[].name", Field::WholeTool),
    ("stop_reason", Field::WholeFinish),
    ("usage", Field::Usage),
    ("usage.service_tier", Field::ServiceTier),
    ("usage.speed", Field::Dimension(Dimension::Speed)),
    ("usage.inference_geo", Field::Dimension(Dimension::Geography)),
    ("usage.input_tokens", Field::Count(Count::Input)),
    ("usage.cache_creation_input_tokens", Field::Count(Count::InputCacheWrite)),
    ("usage.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    ("usage.cache_creation.ephemeral_1h_input_tokens", Field::Count(Count::InputCacheWrite1h)),
    ("usage.cache_read_input_tokens", Field::Count(Count::InputCached)),
    ("usage.output_tokens", Field::Count(Count::Output)),
    ("usage.output_tokens_details.thinking_tokens", Field::Count(Count::OutputReasoning)),
    // An answer in the shape of another path.
    ("usage.prompt_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.completion_tokens", Field::Extra(FOREIGN_OUTPUT)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "anthropic",
    operation: "chat",
    route: Some("/v1/messages"),
    paths: &["/v1/messages"],
    error_shape: ErrorShape::Anthropic,
    end_mark: EndMark::Done,
    form: Form::Typed,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    super::foreign::with(&[FRAME, WHOLE].concat())
        .also_at("message.usage", Field::InnerUsage, "usage")
        .also_at("usage.iterations[]", Field::Iteration, "usage")
        .also_at("usage.iterations[].type", Field::IterationType, "usage.service_tier")
        .with_unknown("usage")
        .with_unknown("message.usage")
});
