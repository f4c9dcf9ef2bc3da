//! `POST …/chat/completions`: the formats of vLLM, llama.cpp, SGLang, TGI, Ollama, TensorRT-LLM, LMDeploy,
//! mistral.rs and OpenAI; Mistral's agents and code. Streamed answers are in `delta`, unstreamed ones in `message`.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};
use crate::request::TOP_COUNTS;

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "openai_chat",
    operation: "chat",
    route: Some("/v1/chat/completions"),
    paths: &["/chat/completions", "/chat/completions/batch", "/agents/completions", "/fim/completions"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: TOP_COUNTS,
};

/// The fields of the content. Mistral's reasoning is a list of texts in a part of the content.
const CONTENT: &[(&str, Field)] = &[
    ("choices[].delta", Field::Delta),
    ("choices[].delta.role", Field::Role),
    ("choices[].delta.content", Field::Content),
    ("choices[].delta.content[].text", Field::ContentPart),
    ("choices[].delta.content[].thinking", Field::ReasoningPart),
    ("choices[].delta.content[].thinking[].text", Field::ReasoningPart),
    ("choices[].delta.reasoning", Field::Reasoning),
    ("choices[].delta.reasoning_content", Field::Reasoning),
    ("choices[].delta.reasoning_text", Field::Reasoning),
    // OpenRouter, MiniMax
    ("choices[].delta.reasoning_details[].text", Field::Reasoning),
    ("choices[].delta.reasoning_details[].summary", Field::Reasoning),
    ("choices[].delta.thinking", Field::Reasoning),
    ("choices[].delta.refusal", Field::Refusal),
    ("choices[].delta.audio.data", Field::Audio),
    ("choices[].delta.tool_calls[].function.name", Field::Tool),
    ("choices[].delta.tool_calls[].function.arguments", Field::Tool),
    ("choices[].delta.function_call.name", Field::Tool),
    ("choices[].delta.function_call.arguments", Field::Tool),
];

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    super::openai::fields_and_lists(CONTENT).also_at("choices[].message", Field::Delta, "choices[].delta")
});
