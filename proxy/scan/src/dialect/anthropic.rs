//! `POST …/messages`: Anthropic, vLLM, llama.cpp, SGLang, Ollama, LMDeploy. Typed events; the
//! first says what the prompt costs, the last but one what the answer does, and each overwrites
//! what the ones before said, name by name; what the first says of an output is no count of it, and
//! an input that is only its cached part is none. `index` numbers the blocks of one answer. Cached input is counted
//! beside `input_tokens`, not in it.

use std::sync::LazyLock;

use crate::field::{Field, Fields};
use crate::frame::{FOREIGN_INPUT, FOREIGN_OUTPUT};

/// What is looked for in a typed frame.
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
    ("message.usage", Field::InnerUsage),
    ("message.usage.service_tier", Field::ServiceTier),
    ("message.usage.input_tokens", Field::InputTokens),
    ("message.usage.cache_creation_input_tokens", Field::CacheWriteTokens),
    ("message.usage.cache_read_input_tokens", Field::CachedTokens),
];

/// What is looked for in a whole answer; the usage is the last typed frame's, too.
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
    ("usage.input_tokens", Field::InputTokens),
    ("usage.cache_creation_input_tokens", Field::CacheWriteTokens),
    ("usage.cache_read_input_tokens", Field::CachedTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("usage.output_tokens_details.thinking_tokens", Field::ReasoningTokens),
    // Of an answer in the shape of another path.
    ("usage.prompt_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.completion_tokens", Field::Extra(FOREIGN_OUTPUT)),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[FRAME, WHOLE].concat()));
